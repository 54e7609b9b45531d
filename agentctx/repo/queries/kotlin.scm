; Kotlin: units and definitions. docs/languages.md says what the captures mean.

[(line_comment) (block_comment)] @comment
[(ERROR) (MISSING)] @error
(package_header (qualified_identifier) @package)

; ---- units
(import) @unit.import
[(block) (class_body) (enum_class_body) (lambda_literal) (when_expression)] @unit.block
; the last entry has the `;` behind it
(enum_class_body (enum_entry) @unit.keep . ";")

; ---- types
(class_declaration name: (_) @name) @def.class
(class_declaration "interface" name: (_) @name) @def.interface
(class_declaration name: (_) @name (enum_class_body)) @def.enum
(class_declaration name: (_) @name (delegation_specifiers (delegation_specifier [
  (constructor_invocation . (user_type) @base) (user_type) @base (explicit_delegation . (user_type) @base)]))) @def.class
(class_declaration (modifiers (annotation [
  (user_type) @decorator (constructor_invocation . (user_type) @decorator)])) name: (_) @name) @def.class
(object_declaration name: (_) @name) @def.class
(object_declaration name: (_) @name (delegation_specifiers (delegation_specifier [
  (constructor_invocation . (user_type) @base) (user_type) @base]))) @def.class
(type_alias type: (_) @name) @def.type

; ---- functions and members
(function_declaration name: (_) @name) @def.function
(function_declaration [(user_type) (nullable_type)] @owner . name: (_) @name) @def.function
(function_declaration name: (_) @name (function_value_parameters) . [(user_type) (nullable_type)] @type) @def.function
(function_declaration (modifiers (annotation [
  (user_type) @decorator (constructor_invocation . (user_type) @decorator)])) name: (_) @name) @def.function
(secondary_constructor "constructor" @name) @def.method
(property_declaration (variable_declaration . (identifier) @name [(user_type) (nullable_type)]? @type)) @def.constant
(property_declaration [(user_type) (nullable_type)] @owner . (variable_declaration . (identifier) @name)) @def.constant
(class_parameter ["val" "var"] (identifier) @name [(user_type) (nullable_type)]? @type) @def.field
(enum_entry . (identifier) @name) @def.field
(enum_entry (modifiers) . (identifier) @name) @def.field

; ---- tests: Kotest
((call_expression . (call_expression . (identifier) @_test (value_arguments . (value_argument (string_literal) @name)))
  (annotated_lambda)) @def.test
  (#any-of? @_test "test" "it" "should" "expect" "scenario" "xtest" "xit"))
((call_expression . (call_expression . (identifier) @_suite (value_arguments . (value_argument (string_literal) @name)))
  (annotated_lambda)) @def.suite
  (#any-of? @_suite "context" "describe" "feature" "given" "Given" "When" "Then"))
((call_expression . (string_literal) @name (annotated_lambda)) @def.test)

; ---- references
(identifier) @ref
(call_expression . (identifier) @ref.call)
(navigation_expression . (_) @receiver (identifier) @ref.attribute .)
(call_expression . (navigation_expression (identifier) @ref.call .))
(user_type (identifier) @ref.type .)
(user_type . (identifier) @receiver (identifier) @ref.type .)
(constructor_invocation (user_type (identifier) @ref.base .))
(delegation_specifier (user_type (identifier) @ref.base .))
(annotation [(user_type (identifier) @ref.decorator .)
  (constructor_invocation (user_type (identifier) @ref.decorator .))])
(infix_expression . (_) @receiver (identifier) @ref.call . (_))
(callable_reference (identifier) @ref.name .)

; ---- no uses
(package_header (qualified_identifier (identifier) @skip))
(import (qualified_identifier (identifier) @skip))
(import (identifier) @skip)
(value_argument (identifier) @skip "=")
(type_parameter (identifier) @local)

; ---- what functions bind
[(lambda_literal) (anonymous_function) (for_statement) (catch_block) (when_expression)] @scope
(parameter . (identifier) @local (_) @local.type)
(class_parameter (identifier) @skip)
(function_declaration (function_body (block (property_declaration (variable_declaration . (identifier) @local (_)? @local.type)))))
(block (property_declaration (variable_declaration . (identifier) @local (user_type) @local.type)))
(block (property_declaration (variable_declaration . (identifier) @local) (_) @local.value .))
(block (property_declaration (variable_declaration . (identifier) @local)))
(block (property_declaration (multi_variable_declaration (variable_declaration . (identifier) @local))))
(for_statement (variable_declaration . (identifier) @local))
(for_statement (multi_variable_declaration (variable_declaration . (identifier) @local)))
(lambda_parameters (variable_declaration . (identifier) @local))
(catch_block . (identifier) @local (_) @local.type)
