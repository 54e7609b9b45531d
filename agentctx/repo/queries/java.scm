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

; ---- references
[(identifier) (type_identifier)] @ref
(type_identifier) @ref.type
(scoped_type_identifier (_) @receiver . (type_identifier) @ref.type)
(method_invocation name: (identifier) @ref.call)
(method_invocation object: (_) @receiver name: (identifier) @ref.call)
(field_access object: (_) @receiver field: (identifier) @ref.attribute)
(method_reference . (_) @receiver (identifier) @ref.attribute .)
(object_creation_expression type: (type_identifier) @ref.call)
(object_creation_expression type: (generic_type (type_identifier) @ref.call))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @ref.call .))
(explicit_constructor_invocation constructor: [(super) (this)] @ref.call)
[(annotation name: (identifier) @ref.decorator) (marker_annotation name: (identifier) @ref.decorator)]
(superclass [(type_identifier) @ref.base (generic_type (type_identifier) @ref.base)
  (scoped_type_identifier (type_identifier) @ref.base .)
  (generic_type (scoped_type_identifier (type_identifier) @ref.base .))])
(super_interfaces (type_list [(type_identifier) @ref.base (generic_type (type_identifier) @ref.base)
  (scoped_type_identifier (type_identifier) @ref.base .)
  (generic_type (scoped_type_identifier (type_identifier) @ref.base .))]))
(extends_interfaces (type_list [(type_identifier) @ref.base (generic_type (type_identifier) @ref.base)
  (scoped_type_identifier (type_identifier) @ref.base .)]))

; ---- no uses
(package_declaration (_) @skip)
(import_declaration (_) @skip)
(element_value_pair key: (identifier) @skip)
(labeled_statement . (identifier) @skip)
[(break_statement (identifier) @skip) (continue_statement (identifier) @skip)]
(type_parameter (type_identifier) @local)
(inferred_parameters (identifier) @local)

; ---- what methods bind
[(lambda_expression) (catch_clause) (enhanced_for_statement) (for_statement)] @scope
(formal_parameter type: (_) @local.type name: (identifier) @local)
(spread_parameter (variable_declarator name: (identifier) @local))
(catch_formal_parameter (catch_type . (_) @local.type) name: (identifier) @local)
(local_variable_declaration type: (_) @local.type declarator: (variable_declarator name: (identifier) @local))
(local_variable_declaration type: (type_identifier) @_var
  declarator: (variable_declarator name: (identifier) @local value: (_) @local.value) (#eq? @_var "var"))
(enhanced_for_statement type: (_) @local.type name: (identifier) @local)
(resource type: (_) @local.type name: (identifier) @local)
(lambda_expression parameters: (identifier) @local)
(type_pattern (_) @local.type (identifier) @local)
(instanceof_expression right: (_) @local.type name: (identifier) @local)
(record_pattern_component (_) @local.type (identifier) @local)
