; Scala 2 and 3: units and definitions. docs/languages.md says what the captures mean.

[(comment) (block_comment)] @comment
[(ERROR) (MISSING)] @error
(package_clause name: (_) @package)

; ---- units
[(import_declaration) (export_declaration)] @unit.import
[(block) (case_block)] @unit.block
; these may be told by indentation alone: then something must stay in them
[(template_body) (with_template_body) (enum_body) (indented_block) (indented_cases) (case_clause)] @unit.nonempty
(end_marker) @unit.keep

; ---- types
(class_definition name: (_) @name) @def.class
(class_definition name: (_) @name extend: (extends_clause [
  (type_identifier) (generic_type) (stable_type_identifier)] @base)) @def.class
(class_definition (annotation name: (_) @decorator) name: (_) @name) @def.class
(object_definition name: (_) @name) @def.class
(object_definition name: (_) @name extend: (extends_clause [
  (type_identifier) (generic_type) (stable_type_identifier)] @base)) @def.class
(package_object name: (_) @name) @def.class
(trait_definition name: (_) @name) @def.trait
(trait_definition name: (_) @name extend: (extends_clause [
  (type_identifier) (generic_type) (stable_type_identifier)] @base)) @def.trait
(enum_definition name: (_) @name) @def.enum
(enum_definition name: (_) @name extend: (extends_clause [
  (type_identifier) (generic_type) (stable_type_identifier)] @base)) @def.enum
(type_definition name: (_) @name) @def.type
(given_definition name: (_) @name return_type: (_)? @base) @def.class

; ---- functions and members
(function_definition name: (_) @name return_type: (_)? @type) @def.function
(function_declaration name: (_) @name return_type: (_)? @type) @def.function
(function_definition (annotation name: (_) @decorator) name: (_) @name) @def.function
(extension_definition parameters: (parameters . (parameter type: (_) @owner))
  (function_definition name: (_) @name) @def.function)
(extension_definition parameters: (parameters . (parameter type: (_) @owner))
  body: (_ (function_definition name: (_) @name) @def.function))
[(val_definition pattern: (identifier) @name type: (_)? @type)
 (var_definition pattern: (identifier) @name type: (_)? @type)
 (val_declaration name: (identifier) @name type: (_)? @type)
 (var_declaration name: (identifier) @name type: (_)? @type)] @def.constant
(class_parameter name: (_) @name type: (_) @type) @def.field
(enum_case_definitions (simple_enum_case name: (_) @name)) @def.field
(enum_case_definitions (full_enum_case name: (_) @name)) @def.field

; ---- tests: ScalaTest, MUnit, specs2, utest
((call_expression function: (call_expression function: (identifier) @_test arguments: (arguments . (string) @name))
  arguments: (block)) @def.test
  (#any-of? @_test "test" "it" "they" "property" "scenario" "ignore" "Scenario"))
((call_expression function: (call_expression function: (identifier) @_suite arguments: (arguments . (string) @name))
  arguments: (block)) @def.suite
  (#any-of? @_suite "describe" "feature" "Feature" "suite"))
((infix_expression left: [(string) (infix_expression)] @name operator: (_) @_in right: (block)) @def.test
  (#any-of? @_in "in" ">>" "taggedAs"))
((infix_expression left: (string) @name operator: (_) @_in right: (block)) @def.suite
  (#any-of? @_in "when" "should" "must" "can" "which"))

; ---- references
[(identifier) (type_identifier)] @ref
(type_identifier) @ref.type
(stable_type_identifier (_) @receiver . (type_identifier) @ref.type)
(field_expression value: (_) @receiver field: (identifier) @ref.attribute)
(call_expression function: (identifier) @ref.call)
(call_expression function: (field_expression field: (identifier) @ref.call))
(call_expression function: (generic_function function: (identifier) @ref.call))
(call_expression function: (generic_function function: (field_expression field: (identifier) @ref.call)))
(infix_expression left: (_) @receiver operator: (identifier) @ref.call)
(instance_expression . [(type_identifier) @ref.call (generic_type type: (type_identifier) @ref.call)])
(extends_clause type: [(type_identifier) @ref.base (generic_type type: (type_identifier) @ref.base)
  (stable_type_identifier (type_identifier) @ref.base .)])
(annotation name: (type_identifier) @ref.decorator)
(case_class_pattern type: (type_identifier) @ref.type)

; ---- no uses
(package_identifier (identifier) @skip)
(import_declaration (_) @skip)
(export_declaration (_) @skip)
(assignment_expression left: (identifier) @ref.name)
(type_parameters name: (identifier) @local)
(type_parameters (identifier) @local)

; ---- what functions bind
[(lambda_expression) (case_clause) (for_expression) (block) (catch_clause)] @scope
(parameter name: (identifier) @local type: (_)? @local.type)
(lambda_expression parameters: (identifier) @local)
(bindings (binding name: (identifier) @local type: (_)? @local.type))
(block (val_definition pattern: (identifier) @local type: (_)? @local.type))
(block (val_definition pattern: (identifier) @local value: (_) @local.value))
(block (var_definition pattern: (identifier) @local type: (_)? @local.type))
(block (var_definition pattern: (identifier) @local value: (_) @local.value))
(typed_pattern pattern: (identifier) @local type: (_) @local.type)
(case_clause pattern: (identifier) @local)
(case_class_pattern pattern: (identifier) @local)
(tuple_pattern (identifier) @local)
(capture_pattern name: (identifier) @local)
(enumerator . (identifier) @local)
