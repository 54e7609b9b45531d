; TypeScript and TSX: what differs from JavaScript.

; ---- units
[(interface_body) (object_type) (enum_body)] @unit.block
(import_alias) @unit.import
(class_body (decorator) @unit.lead)

; ---- classes
(class_declaration name: (_) @name (class_heritage [
  (extends_clause value: (_) @base) (implements_clause (_) @base)])) @def.class
(abstract_class_declaration name: (_) @name) @def.class
(abstract_class_declaration name: (_) @name (class_heritage [
  (extends_clause value: (_) @base) (implements_clause (_) @base)])) @def.class
(class_body (decorator [
  (identifier) @decorator (member_expression) @decorator (call_expression function: (_) @decorator)])
  . (decorator)* . (method_definition name: (_) @name) @def.method)
(class_body (public_field_definition name: (_) @name type: (type_annotation (_) @type)?) @def.field)
(class_body (public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @def.method)
(public_field_definition name: (_) @name value: [
  (arrow_function return_type: (type_annotation (_) @type))
  (arrow_function body: (statement_block (return_statement (_) @returned)))
  (arrow_function body: (expression) @returned)
  (new_expression) @value (call_expression) @value (identifier) @value (member_expression) @value])
(class_body (public_field_definition decorator: (decorator [
  (identifier) @decorator (member_expression) @decorator (call_expression function: (_) @decorator)])
  name: (_) @name) @def.field)
(class_body (method_definition name: (_) @name return_type: (type_annotation (_) @type)) @def.method)
(class_body [
  (abstract_method_signature name: (_) @name return_type: (type_annotation (_) @type)?)
  (method_signature name: (_) @name return_type: (type_annotation (_) @type)?)] @def.method)
; `constructor(private readonly x: T)` declares a field
(class_body (method_definition name: (_) @owner.self parameters: (formal_parameters
  (required_parameter [(accessibility_modifier) "readonly"] pattern: (identifier) @name
    type: (type_annotation (_) @type)?) @def.field)))

; ---- interfaces, aliases, enums, namespaces
(interface_declaration name: (_) @name) @def.interface
(interface_declaration name: (_) @name (extends_type_clause type: (_) @base)) @def.interface
(interface_body (method_signature name: (_) @name return_type: (type_annotation (_) @type)?) @def.method)
(interface_body (property_signature name: (_) @name type: (type_annotation (_) @type)?) @def.field)
(interface_body (property_signature name: (_) @name type: (type_annotation (function_type))) @def.method)
(type_alias_declaration name: (_) @name) @def.type
(type_alias_declaration value: [
  (object_type (property_signature name: (_) @name type: (type_annotation (_) @type)?) @def.field)
  (intersection_type (object_type (property_signature name: (_) @name type: (type_annotation (_) @type)?) @def.field))
  (union_type (object_type (property_signature name: (_) @name type: (type_annotation (_) @type)?) @def.field))
])
(type_alias_declaration value: (object_type
  (method_signature name: (_) @name return_type: (type_annotation (_) @type)?) @def.method))
; what an alias stands for
(type_alias_declaration name: (_) @name value: (generic_type) @type) @def.type
(type_alias_declaration name: (_) @name value: [
  (type_identifier) @base
  (nested_type_identifier) @base
  (generic_type name: (_) @base)
  (intersection_type [(type_identifier) @base (generic_type name: (_) @base) (nested_type_identifier) @base])
  (intersection_type (intersection_type
    [(type_identifier) @base (generic_type name: (_) @base) (nested_type_identifier) @base]))
  (union_type [(type_identifier) @base (generic_type name: (_) @base) (nested_type_identifier) @base])
  (union_type (union_type [(type_identifier) @base (generic_type name: (_) @base) (nested_type_identifier) @base]))
  (parenthesized_type (union_type [(type_identifier) @base (generic_type name: (_) @base)]))
]) @def.type
(enum_declaration name: (_) @name) @def.enum
(enum_body (enum_assignment name: (_) @name) @def.field)
(enum_body (property_identifier) @name @def.field)
[(internal_module name: (_) @name) (module name: (_) @name)] @def.namespace

; ---- functions
(function_signature name: (_) @name return_type: (type_annotation (_) @type)?) @def.function
(function_declaration name: (_) @name return_type: (type_annotation (_) @type)) @def.function
(variable_declarator name: (identifier) @name
  value: (arrow_function return_type: (type_annotation (_) @type))) @def.function
(program [
  (lexical_declaration (variable_declarator name: (identifier) @name type: (type_annotation (_) @type)) @def.constant)
  (export_statement declaration: (lexical_declaration
    (variable_declarator name: (identifier) @name type: (type_annotation (_) @type)) @def.constant))
  (ambient_declaration (_ (variable_declarator name: (identifier) @name type: (type_annotation (_) @type)?) @def.constant))
  (export_statement declaration: (ambient_declaration
    (_ (variable_declarator name: (identifier) @name type: (type_annotation (_) @type)?) @def.constant)))])
(internal_module body: (statement_block (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name type: (type_annotation (_) @type)?) @def.constant))))

; ---- references and bindings
(type_identifier) @ref.type
(nested_type_identifier module: (_) @receiver name: (type_identifier) @ref.type)
(nested_identifier object: (_) @receiver property: (property_identifier) @ref.attribute)
(extends_clause value: [(identifier) @ref.base (member_expression property: (_) @ref.base)])
(implements_clause [(type_identifier) @ref.base (generic_type name: (type_identifier) @ref.base)
  (nested_type_identifier name: (_) @ref.base) (generic_type name: (nested_type_identifier name: (_) @ref.base))])
(extends_type_clause type: [(type_identifier) @ref.base (generic_type name: (type_identifier) @ref.base)
  (nested_type_identifier name: (_) @ref.base)])
(type_parameter name: (type_identifier) @local)
(type_parameter name: (type_identifier) @local constraint: (constraint (_) @local.type))
(mapped_type_clause name: (type_identifier) @local)
(infer_type . (type_identifier) @local.inferred)
[(required_parameter pattern: (identifier) @local) (optional_parameter pattern: (identifier) @local)]
[(required_parameter pattern: (identifier) @local type: (type_annotation (_) @local.type))
 (optional_parameter pattern: (identifier) @local type: (type_annotation (_) @local.type))]
(variable_declarator name: (identifier) @local type: (type_annotation (_) @local.type))
[(required_parameter pattern: (object_pattern [
    (shorthand_property_identifier_pattern) @local
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @local)
    (pair_pattern key: (property_identifier) @local.key value: (identifier) @local)])
  type: (type_annotation (_) @local.in))
 (variable_declarator name: (object_pattern [
    (shorthand_property_identifier_pattern) @local
    (pair_pattern key: (property_identifier) @local.key value: (identifier) @local)])
  type: (type_annotation (_) @local.in))]
(type_predicate name: (identifier) @skip)
[(function_signature) (method_signature) (abstract_method_signature) (function_type) (constructor_type)
 (call_signature) (construct_signature) (interface_declaration) (type_alias_declaration) (class_declaration)
 (abstract_class_declaration) (object_type) (conditional_type)] @scope
(index_signature name: (identifier) @skip)
(export_statement "=" (identifier) @export.local) @export.whole
(export_statement "default" declaration: (abstract_class_declaration name: (_) @export.local)) @export
