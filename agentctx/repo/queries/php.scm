; PHP: units and definitions. docs/languages.md says what the captures mean.

(comment) @comment
[(ERROR) (MISSING)] @error
(namespace_definition name: (_) @package)

; ---- units
(namespace_use_declaration) @unit.import
(program (expression_statement
  [(require_once_expression) (require_expression) (include_expression) (include_once_expression)]) @unit.import)
(program (php_tag) @unit.keep)
[(compound_statement) (declaration_list) (enum_declaration_list) (colon_block)] @unit.block
[(switch_block) (case_statement) (default_statement) (match_block) (array_creation_expression)] @unit.block

; ---- types
(class_declaration name: (_) @name) @def.class
(class_declaration name: (_) @name (base_clause (_) @base)) @def.class
(class_declaration name: (_) @name (class_interface_clause (_) @base)) @def.class
(class_declaration name: (_) @name body: (declaration_list (use_declaration [(name) (qualified_name)] @base))) @def.class
(class_declaration attributes: (attribute_list (attribute_group (attribute . (_) @decorator))) name: (_) @name) @def.class
(interface_declaration name: (_) @name) @def.interface
(interface_declaration name: (_) @name (base_clause (_) @base)) @def.interface
(trait_declaration name: (_) @name) @def.trait
(trait_declaration name: (_) @name body: (declaration_list (use_declaration [(name) (qualified_name)] @base))) @def.trait
(enum_declaration name: (_) @name) @def.enum
(enum_declaration name: (_) @name (class_interface_clause (_) @base)) @def.enum

; ---- functions and members
(function_definition name: (_) @name return_type: (_)? @type) @def.function
(method_declaration name: (_) @name return_type: (_)? @type) @def.method
(method_declaration attributes: (attribute_list (attribute_group (attribute . (_) @decorator))) name: (_) @name) @def.method
; `/** @test */`
((comment) @decorator . (method_declaration name: (_) @name) @def.method (#match? @decorator "@(test|before|after)\\b"))
(property_declaration type: (_)? @type (property_element name: (variable_name (name) @name))) @def.field
(property_promotion_parameter type: (_)? @type name: (variable_name (name) @name) @owner.self) @def.field
(enum_case name: (_) @name) @def.field
(const_declaration (const_element . (name) @name)) @def.constant
(program (expression_statement (function_call_expression function: (name) @_define
  arguments: (arguments . (argument (string (string_content) @name)))) @def.constant)
  (#eq? @_define "define"))
(program (expression_statement (assignment_expression left: (variable_name (name) @name))) @def.constant)

; ---- tests: Pest
((function_call_expression function: (name) @_test
  arguments: (arguments . (argument (string) @name) (argument [(anonymous_function) (arrow_function)]))) @def.test
  (#any-of? @_test "it" "test" "arch"))
((function_call_expression function: (name) @_suite
  arguments: (arguments . (argument (string) @name) (argument (anonymous_function)))) @def.suite
  (#eq? @_suite "describe"))
((function_call_expression function: (name) @name
  arguments: (arguments . (argument [(anonymous_function) (arrow_function)]))) @def.fixture
  (#any-of? @name "beforeEach" "afterEach" "beforeAll" "afterAll"))

; ---- references
(name) @ref
(function_call_expression function: [(name) @ref.call (qualified_name (name) @ref.call)])
(qualified_name prefix: (namespace_name (name) @receiver .) (name) @ref.type)
(member_call_expression object: (_) @receiver name: (name) @ref.call)
(nullsafe_member_call_expression object: (_) @receiver name: (name) @ref.call)
(scoped_call_expression scope: (_) @receiver name: (name) @ref.call)
(member_access_expression object: (_) @receiver name: (name) @ref.attribute)
(nullsafe_member_access_expression object: (_) @receiver name: (name) @ref.attribute)
((class_constant_access_expression . (_) @receiver (name) @ref.attribute .) (#not-eq? @ref.attribute "class"))
(scoped_property_access_expression scope: (_) @receiver name: (variable_name (name) @ref.attribute))
(object_creation_expression [(name) @ref.call (qualified_name (name) @ref.call)])
(named_type [(name) @ref.type (qualified_name (name) @ref.type)])
[(base_clause [(name) @ref.base (qualified_name (name) @ref.base)])
 (class_interface_clause [(name) @ref.base (qualified_name (name) @ref.base)])
 (use_declaration [(name) @ref.base (qualified_name (name) @ref.base)])]
(attribute [(name) @ref.decorator (qualified_name (name) @ref.decorator)])

; ---- no uses
(variable_name (name) @skip @variable)
(namespace_definition name: (namespace_name (name) @skip))
(namespace_use_clause (name) @skip)
(namespace_use_clause (qualified_name (name) @skip))
(namespace_name (name) @skip)
(argument name: (name) @skip)
((class_constant_access_expression (name) @skip .) (#eq? @skip "class"))

; ---- what functions bind
[(anonymous_function) (arrow_function)] @scope
(simple_parameter type: (_)? @local.type name: (variable_name (name) @local))
(property_promotion_parameter type: (_)? @local.type name: (variable_name (name) @local))
(variadic_parameter name: (variable_name (name) @local))
(assignment_expression left: (variable_name (name) @local) right: (_) @local.value)
(foreach_statement "as" . (variable_name (name) @local))
(foreach_statement "as" . (by_ref (variable_name (name) @local)))
(foreach_statement "as" . (pair (variable_name (name) @local)))
(foreach_statement "as" . (pair (by_ref (variable_name (name) @local))))
(list_literal (variable_name (name) @local))
(list_literal (by_ref (variable_name (name) @local)))
(catch_clause type: (type_list . (_) @local.type) name: (variable_name (name) @local))
