; JavaScript and JSX: what differs from TypeScript.

(class_declaration name: (_) @name (class_heritage (_) @base)) @def.class
(variable_declarator name: (identifier) @name value: (class (class_heritage (_) @base))) @def.class
(class_body (field_definition property: (_) @name) @def.field)
(class_body (field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @def.method)
