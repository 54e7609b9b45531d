; C#: units and definitions. docs/languages.md says what the captures mean.

[(comment) (preproc_region) (preproc_endregion)] @comment
[(ERROR) (MISSING)] @error
(file_scoped_namespace_declaration name: (_) @package)

; ---- units
[(using_directive) (extern_alias_directive)] @unit.import
[(block) (declaration_list) (enum_member_declaration_list) (accessor_list)] @unit.block
[(switch_body) (switch_section) (switch_expression) (initializer_expression)] @unit.block
[(preproc_if) (preproc_else) (preproc_elif)] @unit.block
[(preproc_else) (preproc_elif)] @unit.clause

; ---- namespaces and types
(namespace_declaration name: (_) @name) @def.namespace
(class_declaration name: (_) @name) @def.class
(record_declaration name: (_) @name) @def.class
(interface_declaration name: (_) @name) @def.interface
(struct_declaration name: (_) @name) @def.struct
(enum_declaration name: (_) @name) @def.enum
(delegate_declaration type: (_) @type name: (_) @name) @def.type
(class_declaration name: (_) @name (base_list (_) @base)) @def.class
(record_declaration name: (_) @name (base_list (_) @base)) @def.class
(interface_declaration name: (_) @name (base_list (_) @base)) @def.interface
(struct_declaration name: (_) @name (base_list (_) @base)) @def.struct
(class_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.class
(record_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.class
(interface_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.interface
(struct_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.struct
(enum_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.enum

; ---- members
(method_declaration returns: (_) @type name: (_) @name) @def.method
(method_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.method
(constructor_declaration name: (_) @name) @def.method
(constructor_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.method
(destructor_declaration "~" @name) @def.method
(operator_declaration type: (_) @type operator: _ @name) @def.method
(conversion_operator_declaration type: (_) @name) @def.method
(local_function_statement type: (_) @type name: (_) @name) @def.function
(property_declaration type: (_) @type name: (_) @name) @def.property
(property_declaration (attribute_list (attribute name: (_) @decorator)) name: (_) @name) @def.property
(indexer_declaration type: (_) @type "this" @name) @def.property
(event_declaration type: (_) @type name: (_) @name) @def.property
(field_declaration (variable_declaration type: (_) @type (variable_declarator name: (_) @name))) @def.field
(field_declaration (attribute_list (attribute name: (_) @decorator))
  (variable_declaration (variable_declarator name: (_) @name))) @def.field
(event_field_declaration (variable_declaration type: (_) @type (variable_declarator name: (_) @name))) @def.field
(enum_member_declaration name: (_) @name) @def.field
(record_declaration (parameter_list (parameter type: (_) @type name: (_) @name) @def.field))

; ---- references
(identifier) @ref
(member_access_expression expression: (_) @receiver name: (identifier) @ref.attribute)
(member_access_expression expression: (_) @receiver name: (generic_name (identifier) @ref.attribute))
(member_access_expression "this" @receiver name: (identifier) @ref.attribute)
(member_access_expression "base" @receiver name: (identifier) @ref.attribute)
(conditional_access_expression condition: (_) @receiver (member_binding_expression name: (identifier) @ref.attribute))
(invocation_expression function: (identifier) @ref.call)
(invocation_expression function: (generic_name (identifier) @ref.call))
(invocation_expression function: (member_access_expression name: (identifier) @ref.call))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @ref.call)))
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (identifier) @ref.call)))
(object_creation_expression type: (identifier) @ref.call)
(object_creation_expression type: (generic_name (identifier) @ref.call))
(object_creation_expression type: (qualified_name qualifier: (_) @receiver name: (identifier) @ref.call))
(qualified_name qualifier: (_) @receiver name: (identifier) @ref.type)
(qualified_name qualifier: (_) @receiver name: (generic_name (identifier) @ref.type))
(generic_name (identifier) @ref.type)
(_ type: (identifier) @ref.type)
(_ returns: (identifier) @ref.type)
(nullable_type type: (identifier) @ref.type)
(array_type type: (identifier) @ref.type)
(type_argument_list (identifier) @ref.type)
(typeof_expression type: (identifier) @ref.type)
(base_list [(identifier) @ref.base (generic_name (identifier) @ref.base)
  (qualified_name name: (identifier) @ref.base) (qualified_name name: (generic_name (identifier) @ref.base))
  (primary_constructor_base_type type: (identifier) @ref.base)])
(attribute name: (identifier) @ref.decorator)

; ---- no uses
(using_directive (_) @skip)
(file_scoped_namespace_declaration name: (_) @skip)
(namespace_declaration name: (_) @quiet)
(argument name: (identifier) @skip)
(labeled_statement . (identifier) @skip)
(type_parameter name: (identifier) @local)

; ---- what methods bind
[(lambda_expression) (anonymous_method_expression) (catch_clause) (foreach_statement) (for_statement)
  (local_function_statement) (class_declaration) (struct_declaration) (interface_declaration) (record_declaration)
  (query_expression)] @scope
(parameter type: (_)? @local.type name: (identifier) @local)
(lambda_expression parameters: (implicit_parameter) @local)
(local_declaration_statement (variable_declaration type: (_) @local.type (variable_declarator name: (identifier) @local)))
(local_declaration_statement (variable_declaration type: (implicit_type)
  (variable_declarator name: (identifier) @local (_) @local.value)))
(using_statement (variable_declaration type: (_) @local.type (variable_declarator name: (identifier) @local)))
(for_statement (variable_declaration (variable_declarator name: (identifier) @local)))
(foreach_statement type: (_) @local.type left: (identifier) @local)
(catch_declaration type: (_) @local.type name: (identifier) @local)
(declaration_pattern type: (_) @local.type name: (identifier) @local)
(declaration_expression type: (_) @local.type name: (identifier) @local)
(from_clause name: (identifier) @local)
(let_clause (identifier) @local)
