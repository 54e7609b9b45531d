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
