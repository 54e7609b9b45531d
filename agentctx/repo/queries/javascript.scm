; JavaScript and JSX: what differs from TypeScript.

(class_declaration name: (_) @name (class_heritage (_) @base)) @def.class
(variable_declarator name: (identifier) @name value: (class (class_heritage (_) @base))) @def.class
(class_body (field_definition property: (_) @name) @def.field)
(class_body (field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @def.method)
(field_definition property: (_) @name value: [
  (arrow_function body: (statement_block (return_statement (_) @returned)))
  (arrow_function body: (expression) @returned)
  (new_expression) @value (call_expression) @value (identifier) @value (member_expression) @value])

; ---- references and bindings
(class_heritage [(identifier) @ref.base (member_expression property: (_) @ref.base)])
(formal_parameters (identifier) @local)
(formal_parameters (assignment_pattern left: (identifier) @local))
