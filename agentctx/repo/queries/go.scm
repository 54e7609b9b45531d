; Go: units and definitions. docs/languages.md says what the captures mean.

(comment) @comment
[(ERROR) (MISSING)] @error
(package_clause (package_identifier) @package)

; ---- units
(import_declaration) @unit.import
[(statement_list) (type_declaration) (const_declaration) (var_declaration) (var_spec_list)] @unit.block
[(expression_switch_statement) (type_switch_statement) (select_statement)] @unit.block
[(field_declaration_list) (interface_type) (literal_value)] @unit.block

; ---- definitions
(function_declaration name: (identifier) @name result: (_)? @type) @def.function
(method_declaration
  receiver: (parameter_list
    (parameter_declaration type: [
      (type_identifier) @owner
      (generic_type type: (type_identifier) @owner)
      (pointer_type (type_identifier) @owner)
      (pointer_type (generic_type type: (type_identifier) @owner))
      (parenthesized_type (pointer_type (type_identifier) @owner))
    ]))
  name: (field_identifier) @name
  result: (_)? @type) @def.method

(type_declaration "type" . (type_spec name: (type_identifier) @name type: (struct_type)) .) @def.struct
(type_declaration "type" . (type_spec name: (type_identifier) @name type: (interface_type)) .) @def.interface
(type_declaration "type" . (type_spec name: (type_identifier) @name) .) @def.type
(type_declaration "type" . (type_alias name: (type_identifier) @name) .) @def.type
(type_spec name: (type_identifier) @name type: (struct_type)) @def.struct
(type_spec name: (type_identifier) @name type: (interface_type)) @def.interface
(type_spec name: (type_identifier) @name) @def.type
(type_alias name: (type_identifier) @name) @def.type

; embedded structs and interfaces
(type_spec name: (type_identifier) @name
  type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base)))) @def.struct
(type_spec name: (type_identifier) @name
  type: (interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .))) @def.interface

(interface_type (method_elem name: (field_identifier) @name result: (_)? @type) @def.method)
(struct_type (field_declaration_list
  (field_declaration name: (field_identifier) @name type: (_) @type) @def.field))

(source_file (const_declaration (const_spec name: (identifier) @name type: (_)? @type) @def.constant))
(source_file (var_declaration (var_spec name: (identifier) @name type: (_)? @type) @def.constant))
(source_file (var_declaration (var_spec_list
  (var_spec name: (identifier) @name type: (_)? @type) @def.constant)))

; ---- references
[(identifier) (type_identifier) (field_identifier)] @ref
(type_identifier) @ref.type
(call_expression function: (identifier) @ref.call)
(call_expression function: (type_instantiation_expression type: (_) @ref.call))
(selector_expression operand: (_) @receiver field: (field_identifier) @ref.attribute)
(call_expression function: (selector_expression field: (field_identifier) @ref.call))
(qualified_type package: (package_identifier) @receiver name: (type_identifier) @ref.type)
(composite_literal type: (type_identifier) @ref.call)
(composite_literal type: (qualified_type name: (type_identifier) @ref.call))
(type_conversion_expression type: (type_identifier) @ref.type)
(struct_type (field_declaration_list (field_declaration !name type: [
  (type_identifier) @ref.base
  (pointer_type (type_identifier) @ref.base)
  (qualified_type name: (type_identifier) @ref.base)
  (pointer_type (qualified_type name: (type_identifier) @ref.base))
  (generic_type type: (type_identifier) @ref.base)])))
(interface_type (type_elem . [(type_identifier) @ref.base (qualified_type name: (type_identifier) @ref.base)] .))

; ---- no uses
(keyed_element . (literal_element (identifier) @skip))
(field_declaration name: (field_identifier) @skip)
(method_elem name: (field_identifier) @skip)
(labeled_statement label: (label_name) @skip)
(type_parameter_declaration name: (identifier) @local)
(import_spec name: (package_identifier) @skip)

; ---- what functions bind
(func_literal) @scope
(parameter_declaration name: (identifier) @local type: (_) @local.type)
(variadic_parameter_declaration name: (identifier) @local)
(short_var_declaration left: (expression_list (identifier) @local))
(short_var_declaration left: (expression_list . (identifier) @local) right: (expression_list . (_) @local.value))
(var_spec name: (identifier) @local type: (_)? @local.type)
(var_spec . name: (identifier) @local value: (expression_list . (_) @local.value))
(const_spec name: (identifier) @local)
(range_clause left: (expression_list (identifier) @local))
(type_switch_statement alias: (expression_list (identifier) @local))
(receive_statement left: (expression_list (identifier) @local))
