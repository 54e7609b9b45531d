; Java: units and definitions. docs/languages.md says what the captures mean.

[(line_comment) (block_comment)] @comment
[(ERROR) (MISSING)] @error
(package_declaration [(scoped_identifier) (identifier)] @package)

; ---- units
(import_declaration) @unit.import
[(block) (constructor_body) (class_body) (interface_body) (enum_body) (annotation_type_body) (module_body)] @unit.block
[(switch_block) (switch_block_statement_group) (array_initializer) (element_value_array_initializer)] @unit.block
(enum_body_declarations) @unit.inline
(switch_block_statement_group (switch_label) @unit.keep)
; the last constant has the `;` behind it
(enum_body (enum_constant) @unit.keep . (enum_body_declarations))

; ---- types
(class_declaration name: (_) @name) @def.class
(class_declaration name: (_) @name superclass: (superclass (_) @base)) @def.class
(class_declaration name: (_) @name interfaces: (super_interfaces (type_list (_) @base))) @def.class
(class_declaration (modifiers [(annotation name: (_) @decorator) (marker_annotation name: (_) @decorator)])
  name: (_) @name) @def.class
(interface_declaration name: (_) @name) @def.interface
(interface_declaration name: (_) @name (extends_interfaces (type_list (_) @base))) @def.interface
(interface_declaration (modifiers [(annotation name: (_) @decorator) (marker_annotation name: (_) @decorator)])
  name: (_) @name) @def.interface
(annotation_type_declaration name: (_) @name) @def.interface
(enum_declaration name: (_) @name) @def.enum
(enum_declaration name: (_) @name interfaces: (super_interfaces (type_list (_) @base))) @def.enum
(record_declaration name: (_) @name) @def.class
(record_declaration name: (_) @name interfaces: (super_interfaces (type_list (_) @base))) @def.class

; ---- members
(method_declaration type: (_) @type name: (_) @name) @def.method
(method_declaration (modifiers [(annotation name: (_) @decorator) (marker_annotation name: (_) @decorator)])
  name: (_) @name) @def.method
[(constructor_declaration name: (_) @name) (compact_constructor_declaration name: (_) @name)] @def.method
(constructor_declaration (modifiers [(annotation name: (_) @decorator) (marker_annotation name: (_) @decorator)])
  name: (_) @name) @def.method
(annotation_type_element_declaration type: (_) @type name: (_) @name) @def.method
(field_declaration type: (_) @type declarator: (variable_declarator name: (_) @name)) @def.field
(field_declaration (modifiers [(annotation name: (_) @decorator) (marker_annotation name: (_) @decorator)])
  declarator: (variable_declarator name: (_) @name)) @def.field
(constant_declaration type: (_) @type declarator: (variable_declarator name: (_) @name)) @def.field
(enum_constant name: (_) @name) @def.field
(record_declaration parameters: (formal_parameters
  (formal_parameter type: (_) @type name: (_) @name) @def.field))
