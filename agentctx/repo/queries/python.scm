; Python: what units, symbols and references are made of. Captures are the contract with agentctx.repo.parse_*.

; ---- units: statements that don't group, and what they are made of
(function_definition) @unit.function
(class_definition) @unit.class
(decorated_definition) @unit.decorated
[(if_statement) (for_statement) (while_statement) (with_statement) (match_statement)] @unit.compound
; the clauses marked `required` go where the head of their `linked` statement goes
(try_statement) @unit.linked
[(except_clause) (finally_clause)] @unit.required
[(elif_clause) (else_clause) (case_clause)] @unit.clause
(block) @unit.block
[(import_statement) (import_from_statement) (future_import_statement)] @unit.import
(pass_statement) @unit.inert
(expression_statement . (string) .) @unit.string
(interpolation) @interpolation

[(ERROR) (MISSING)] @error

; ---- definitions
(assignment) @def.assignment
(augmented_assignment) @def.augmented
(type_alias_statement) @def.alias
(function_definition name: (identifier) @def.name)
(class_definition name: (identifier) @def.name)

; ---- scopes
(lambda) @scope.lambda
[(list_comprehension) (set_comprehension) (dictionary_comprehension) (generator_expression)] @scope.comprehension
(function_definition type_parameters: (type_parameter) @scope.type-parameters) @scope.generic
(class_definition type_parameters: (type_parameter) @scope.type-parameters) @scope.generic

; ---- bindings
(assignment left: (identifier) @bind)
(augmented_assignment left: (identifier) @bind.augmented)
(pattern_list (identifier) @bind)
(tuple_pattern (identifier) @bind)
(list_pattern (identifier) @bind)
(list_splat_pattern (identifier) @bind)
(for_statement left: (identifier) @bind)
(for_in_clause left: (identifier) @bind)
(as_pattern_target (identifier) @bind)
(as_pattern_target (tuple (identifier) @bind))
(as_pattern_target (list (identifier) @bind))
(as_pattern (case_pattern) (identifier) @bind)
(named_expression name: (identifier) @bind.walrus)
(case_pattern (dotted_name . (identifier) @bind .))
(keyword_pattern (dotted_name . (identifier) @bind .))
(union_pattern (dotted_name . (identifier) @bind .))
(splat_pattern (identifier) @bind)
(global_statement (identifier) @bind.outer)
(nonlocal_statement (identifier) @bind.outer)

; ---- what names hold
[(for_statement) (for_in_clause)] @flow.for
(as_pattern) @flow.as
(named_expression) @flow.walrus
[(return_statement) (yield)] @flow.return

; ---- identifiers that are no uses
(type_alias_statement left: (type (identifier) @skip))
(type_alias_statement left: (type (generic_type . (identifier) @skip)))
(keyword_argument name: (identifier) @skip)
(keyword_pattern . (identifier) @skip)
(dictionary_splat_pattern (identifier) @skip)
(parameters (identifier) @skip)
(lambda_parameters (identifier) @skip)
(default_parameter name: (identifier) @skip)
(typed_default_parameter name: (identifier) @skip)
(typed_parameter . (identifier) @skip)
(dotted_name (identifier) @name.dotted)
(aliased_import alias: (identifier) @skip)

; ---- uses
(identifier) @ref
(attribute) @ref.attribute
(attribute object: [(identifier) (attribute)] @ref.object)
(call function: [(identifier) (attribute)] @ref.call)
(decorator [(identifier) (attribute)] @ref.decorator)
(decorator (call function: [(identifier) (attribute)] @ref.decorator))
(class_definition superclasses: (argument_list [(identifier) (attribute)] @ref.base))
(class_definition superclasses: (argument_list (subscript value: [(identifier) (attribute)] @ref.base)))
(type) @ref.type
(type (string) @ref.type-string)
(subscript subscript: (string) @ref.subscript-string)
; `A = Union["B", None]`: strings in it are types, as in an annotation
(assignment right: (subscript value: (_) @_head
  (#match? @_head "^([A-Za-z_]+[.])?(Union|Optional|Callable|Dict|List|Tuple|Set|Sequence|Mapping|Iterable|Iterator|Type)$")) @ref.alias)
; `cast("A", x)`, `TypeVar("T", "A", bound="B")`, `NewType("N", "A")`: arguments that are types
(call function: (_) @_head arguments: (argument_list . (_) @ref.alias)
  (#match? @_head "^([A-Za-z_]+[.])?(cast|assert_type)$"))
(call function: (_) @_head arguments: (argument_list . (string) @ref.type-string)
  (#match? @_head "^([A-Za-z_]+[.])?(cast|assert_type)$"))
(call function: (_) @_head arguments: (argument_list (string) (_) @ref.alias)
  (#match? @_head "^([A-Za-z_]+[.])?(TypeVar|NewType)$"))
(call function: (_) @_head arguments: (argument_list (string) (string) @ref.type-string)
  (#match? @_head "^([A-Za-z_]+[.])?(TypeVar|NewType)$"))
(call function: (_) @_head arguments: (argument_list
    (keyword_argument name: (identifier) @_key value: (string) @ref.type-string))
  (#match? @_head "^([A-Za-z_]+[.])?(TypeVar|ParamSpec)$") (#any-of? @_key "bound" "default"))
(generic_type . (identifier) @ref.generic) @ref.generic-type
(subscript value: [(identifier) (attribute)] @ref.generic) @ref.generic-type
(assignment left: (attribute) @ref.store)
(pattern_list (attribute) @ref.store)
(tuple_pattern (attribute) @ref.store)
(for_statement left: (attribute) @ref.store)
; `case m.X`: dotted names occur in imports and in patterns only
(case_pattern (dotted_name) @ref.dotted)
(union_pattern (dotted_name) @ref.dotted)
(keyword_pattern (dotted_name) @ref.dotted)
(dict_pattern (dotted_name) @ref.dotted)
(class_pattern (dotted_name) @ref.dotted)
(class_definition superclasses: (argument_list (subscript subscript: (_) @ref.type)))
