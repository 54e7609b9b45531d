; C, and what C++ has of it: units and definitions. docs/languages.md says what the captures mean.

(comment) @comment
[(ERROR) (MISSING)] @error

; ---- units
(preproc_include) @unit.import
[(compound_statement) (case_statement) (declaration_list) (field_declaration_list) (enumerator_list)] @unit.block
(initializer_list) @unit.block
[(preproc_if) (preproc_ifdef) (preproc_else) (preproc_elif) (preproc_elifdef)] @unit.block
[(preproc_else) (preproc_elif) (preproc_elifdef)] @unit.clause
((preproc_call directive: (preproc_directive) @_directive) @unit.keep (#match? @_directive "^#\\s*(endif|else|elif)"))

; ---- functions: the declarator; what it stands in is taken in as long as it holds nothing else
(function_declarator declarator: [(identifier) (field_identifier)] @name) @def.function
(function_definition type: (_) @type declarator: [
  (function_declarator declarator: [(identifier) (field_identifier)] @name)
  (_ declarator: (function_declarator declarator: [(identifier) (field_identifier)] @name))]) @def.function
([(declaration type: (_) @type declarator: [
    (function_declarator declarator: [(identifier) (field_identifier)] @name)
    (_ declarator: (function_declarator declarator: [(identifier) (field_identifier)] @name))])
  (field_declaration type: (_) @type declarator: [
    (function_declarator declarator: (field_identifier) @name)
    (_ declarator: (function_declarator declarator: (field_identifier) @name))])]) @def.function
(preproc_function_def name: (_) @name) @def.function

; ---- types
(struct_specifier name: (_) @name body: (_)) @def.struct
(union_specifier name: (_) @name body: (_)) @def.struct
(enum_specifier name: (_) @name body: (_)) @def.enum
(type_definition type: (struct_specifier !name body: (_)) declarator: (type_identifier) @name) @def.struct
(type_definition type: (union_specifier !name body: (_)) declarator: (type_identifier) @name) @def.struct
(type_definition type: (enum_specifier !name body: (_)) declarator: (type_identifier) @name) @def.enum
(type_definition declarator: [
  (type_identifier) @name
  (pointer_declarator declarator: (type_identifier) @name)
  (array_declarator declarator: (type_identifier) @name)
  (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))
]) @def.type

; ---- values
(declaration type: (_) @type declarator: [
  (identifier) @name
  (array_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (identifier) @name)
  (init_declarator declarator: [
    (identifier) @name
    (array_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (array_declarator declarator: (identifier) @name))
    (array_declarator declarator: (array_declarator declarator: (identifier) @name))])
]) @def.constant
(preproc_def name: (_) @name value: (_)) @def.constant
(enumerator name: (_) @name) @def.field
(field_declaration type: (_) @type declarator: [
  (field_identifier) @name
  (array_declarator declarator: (field_identifier) @name)
  (pointer_declarator declarator: (field_identifier) @name)
  (pointer_declarator declarator: (pointer_declarator declarator: (field_identifier) @name))
  (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name)))
]) @def.field

; ---- references
[(identifier) (type_identifier) (field_identifier)] @ref
(type_identifier) @ref.type
(call_expression function: (identifier) @ref.call)
(field_expression argument: (_) @receiver field: (field_identifier) @ref.attribute)
(call_expression function: (field_expression field: (field_identifier) @ref.call))
(struct_specifier name: (type_identifier) @ref.type)
(preproc_ifdef name: (identifier) @skip)
(preproc_defined (identifier) @skip)
(preproc_params (identifier) @skip)
(preproc_def name: (identifier) @skip)
(field_designator (field_identifier) @skip)
[(goto_statement label: (statement_identifier) @skip) (labeled_statement label: (statement_identifier) @skip)]

; ---- what functions bind
[(parameter_list) (for_statement)] @scope.none
(parameter_declaration type: (_) @local.type declarator: (identifier) @local)
(parameter_declaration type: (_) @local.type declarator: (pointer_declarator declarator: (identifier) @local))
(parameter_declaration declarator: (array_declarator declarator: (identifier) @local))
(parameter_declaration declarator: (pointer_declarator declarator: (pointer_declarator declarator: (identifier) @local)))
(compound_statement (declaration type: (_) @local.type declarator: (identifier) @local))
(compound_statement (declaration type: (_) @local.type declarator: (init_declarator declarator: (identifier) @local)))
(compound_statement (declaration type: (_) @local.type declarator: (pointer_declarator declarator: (identifier) @local)))
(compound_statement (declaration type: (_) @local.type
  declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @local))))
(compound_statement (declaration declarator: (array_declarator declarator: (identifier) @local)))
(compound_statement (declaration declarator: (init_declarator declarator: (array_declarator declarator: (identifier) @local))))
(for_statement initializer: (declaration type: (_) @local.type declarator: (init_declarator declarator: (identifier) @local)))
(for_statement initializer: (declaration type: (_) @local.type
  declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @local))))
