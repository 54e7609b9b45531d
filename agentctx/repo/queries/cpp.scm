; C++: what it has beside C.

; ---- units
(access_specifier) @unit.keep
(requirement_seq) @unit.block

; ---- namespaces and classes
(namespace_definition name: (_) @name) @def.namespace
(class_specifier name: [(type_identifier) @name (template_type name: (_) @name)
  (qualified_identifier scope: (_) @owner name: (type_identifier) @name)] body: (_)) @def.class
(class_specifier name: (_) @name (base_class_clause [
  (type_identifier) (qualified_identifier) (template_type)] @base) body: (_)) @def.class
(struct_specifier name: (template_type name: (_) @name) body: (_)) @def.struct
(struct_specifier name: (_) @name (base_class_clause [
  (type_identifier) (qualified_identifier) (template_type)] @base) body: (_)) @def.struct
(alias_declaration name: (_) @name) @def.type
(concept_definition name: (_) @name) @def.type

; ---- functions
(function_declarator declarator: [(operator_name) (destructor_name)] @name) @def.function
(function_declarator declarator: (template_function name: (identifier) @name)) @def.function
; `A::f`, `ns::A::f`, `A<T>::f`
(function_declarator declarator: (qualified_identifier
  scope: (_) @owner name: [(identifier) (operator_name) (destructor_name)] @name)) @def.method
(function_declarator declarator: (qualified_identifier scope: (_) @owner.outer name: (qualified_identifier
  scope: (_) @owner name: [(identifier) (operator_name) (destructor_name)] @name))) @def.method
(function_definition type: (_) @type declarator: [
  (function_declarator declarator: (qualified_identifier name: [(identifier) (operator_name)] @name))
  (_ declarator: (function_declarator declarator: (qualified_identifier name: [(identifier) (operator_name)] @name)))
  (function_declarator declarator: (qualified_identifier
    name: (qualified_identifier name: [(identifier) (operator_name)] @name)))
]) @def.function
(function_definition declarator: (operator_cast type: (_) @name)) @def.function
(function_definition declarator: (qualified_identifier
  scope: (_) @owner name: (operator_cast type: (_) @name))) @def.method
(reference_declarator (identifier) @name) @def.constant

; ---- values
(field_declaration type: (_) @type declarator: (reference_declarator (field_identifier) @name)) @def.field
(declaration type: (_) @type declarator: (init_declarator
  declarator: (qualified_identifier scope: (_) @owner name: (identifier) @name))) @def.field

; ---- tests: googletest, Catch2, doctest, Boost.Test
((function_definition !type declarator: (function_declarator
    declarator: (identifier) @_macro
    parameters: (parameter_list . (parameter_declaration) @owner . (parameter_declaration) @name .))) @def.test
  (#any-of? @_macro "TEST" "TEST_F" "TEST_P" "TYPED_TEST" "TYPED_TEST_P" "FRIEND_TEST" "FUZZ_TEST"
    "BOOST_FIXTURE_TEST_CASE"))
((function_definition !type declarator: (function_declarator
    declarator: (identifier) @_macro parameters: (parameter_list . (parameter_declaration) @name .))) @def.test
  (#any-of? @_macro "BOOST_AUTO_TEST_CASE" "BENCHMARK" "TEST_CASE"))
((expression_statement (call_expression
    function: (identifier) @_macro arguments: (argument_list . (string_literal) @name))) @def.test
  . (compound_statement) @end
  (#any-of? @_macro "TEST_CASE" "TEST_CASE_METHOD" "SCENARIO" "TEST_CASE_TEMPLATE" "SECTION" "SUBCASE" "GIVEN" "WHEN" "THEN"))

; ---- references of C++
(qualified_identifier scope: (_) @receiver name: [(identifier) @ref.name (type_identifier) @ref.type
  (template_function name: (identifier) @ref.name) (template_type name: (type_identifier) @ref.type)])
(call_expression function: (qualified_identifier name: (identifier) @ref.call))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @ref.call)))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @ref.call)))
(call_expression function: (template_function name: (identifier) @ref.call))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @ref.call)))
(new_expression type: [(type_identifier) @ref.call (qualified_identifier name: (type_identifier) @ref.call)
  (template_type name: (type_identifier) @ref.call)])
(base_class_clause [(type_identifier) @ref.base (template_type name: (type_identifier) @ref.base)
  (qualified_identifier name: (type_identifier) @ref.base)
  (qualified_identifier name: (template_type name: (type_identifier) @ref.base))])
(field_initializer (field_identifier) @ref.attribute)
(namespace_identifier) @skip
(function_declarator declarator: (qualified_identifier) @quiet)
(namespace_alias_definition name: (namespace_identifier) @skip)
(type_parameter_declaration (type_identifier) @local)
(optional_type_parameter_declaration name: (type_identifier) @local)
(template_declaration) @scope

[(lambda_expression) (for_range_loop) (catch_clause)] @scope
(parameter_declaration type: (_) @local.type declarator: (reference_declarator (identifier) @local))
(optional_parameter_declaration type: (_) @local.type declarator: (identifier) @local)
(optional_parameter_declaration type: (_) @local.type declarator: (reference_declarator (identifier) @local))
(optional_parameter_declaration type: (_) @local.type declarator: (pointer_declarator declarator: (identifier) @local))
(variadic_parameter_declaration declarator: (variadic_declarator (identifier) @local))
(compound_statement (declaration type: (_) @local.type
  declarator: (init_declarator declarator: (reference_declarator (identifier) @local))))
(compound_statement (declaration type: (placeholder_type_specifier)
  declarator: (init_declarator declarator: (identifier) @local value: (_) @local.value)))
(compound_statement (declaration type: (placeholder_type_specifier)
  declarator: (init_declarator declarator: (reference_declarator (identifier) @local) value: (_) @local.value)))
(for_range_loop type: (_) @local.type declarator: (identifier) @local)
(for_range_loop type: (_) @local.type declarator: (reference_declarator (identifier) @local))
(structured_binding_declarator (identifier) @local)
(lambda_capture_initializer left: (identifier) @local)
