; Rust: units and definitions. docs/languages.md says what the captures mean.

[(line_comment) (block_comment)] @comment
[(ERROR) (MISSING)] @error

; ---- units
[(use_declaration) (extern_crate_declaration) (mod_item !body)] @unit.import
(attribute_item) @unit.lead
[(block) (declaration_list) (field_declaration_list) (enum_variant_list) (match_block)] @unit.block
[(field_initializer_list) (macro_definition) (array_expression)] @unit.block

; ---- definitions
(function_item name: (_) @name return_type: (_)? @type) @def.function
(function_signature_item name: (_) @name return_type: (_)? @type) @def.function
(macro_definition name: (_) @name) @def.function
(struct_item name: (_) @name) @def.struct
(union_item name: (_) @name) @def.struct
(enum_item name: (_) @name) @def.enum
(trait_item name: (_) @name) @def.trait
(trait_item name: (_) @name bounds: (trait_bounds [
  (type_identifier) (scoped_type_identifier) (generic_type)] @base)) @def.trait
(type_item name: (_) @name) @def.type
(associated_type name: (_) @name) @def.type
(mod_item name: (_) @name body: (_)) @def.namespace

(impl_item trait: (_)? @base type: [
  (type_identifier) @name
  (scoped_type_identifier name: (_) @name)
  (generic_type type: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (_) @name))
  (reference_type type: (type_identifier) @name)
  (reference_type type: (generic_type type: (type_identifier) @name))
  (primitive_type) @name
]) @def.impl

(const_item name: (_) @name type: (_) @type) @def.constant
(static_item name: (_) @name type: (_) @type) @def.constant
(field_declaration name: (_) @name type: (_) @type) @def.field
(enum_variant name: (_) @name) @def.field

; ---- attributes, which stand before what they belong to
((attribute_item (attribute . (_) @decorator)) . [(attribute_item) (line_comment) (block_comment)]* .
  (function_item name: (_) @name) @def.function)
((attribute_item (attribute . (_) @decorator)) . [(attribute_item) (line_comment) (block_comment)]* .
  (struct_item name: (_) @name) @def.struct)
((attribute_item (attribute . (_) @decorator)) . [(attribute_item) (line_comment) (block_comment)]* .
  (enum_item name: (_) @name) @def.enum)
((attribute_item (attribute . (_) @decorator)) . [(attribute_item) (line_comment) (block_comment)]* .
  (mod_item name: (_) @name body: (_)) @def.namespace)

; ---- references
[(identifier) (type_identifier) (field_identifier) (shorthand_field_identifier)] @ref
(type_identifier) @ref.type
(scoped_identifier path: (_) @receiver name: (identifier) @ref.name)
(scoped_type_identifier path: (_) @receiver name: (type_identifier) @ref.type)
(field_expression value: (_) @receiver field: (field_identifier) @ref.attribute)
(call_expression function: [
  (identifier) @ref.call
  (scoped_identifier name: (identifier) @ref.call)
  (field_expression field: (field_identifier) @ref.call)
  (generic_function function: [
    (identifier) @ref.call
    (scoped_identifier name: (identifier) @ref.call)
    (field_expression field: (field_identifier) @ref.call)])])
(struct_expression name: [(type_identifier) @ref.call (scoped_type_identifier name: (type_identifier) @ref.call)])
(tuple_struct_pattern type: [(identifier) @ref.name (scoped_identifier name: (identifier) @ref.name)])
(macro_invocation macro: [(identifier) @ref.call (scoped_identifier name: (identifier) @ref.call)])
(attribute_item (attribute [(identifier) @ref.decorator (scoped_identifier name: (identifier) @ref.decorator)]))
(impl_item trait: [(type_identifier) @ref.base (generic_type type: (type_identifier) @ref.base)
  (scoped_type_identifier name: (type_identifier) @ref.base)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @ref.base))])
(trait_item bounds: (trait_bounds [(type_identifier) @ref.base (generic_type type: (type_identifier) @ref.base)
  (scoped_type_identifier name: (type_identifier) @ref.base)]))

; ---- imports and no uses
(use_declaration (_) @use.path)
(extern_crate_declaration name: (identifier) @skip)
(field_initializer field: (field_identifier) @skip)
(field_pattern name: (field_identifier) @skip)
(type_binding name: (type_identifier) @skip)
(type_parameter name: (type_identifier) @local)
(const_parameter name: (identifier) @local)
; in macro calls there are tokens only
((token_tree (identifier) @ref.call . (token_tree) @_arguments) (#match? @_arguments "^\\("))
(token_tree "." @receiver . (identifier) @ref.attribute)
((token_tree "." @receiver . (identifier) @ref.call . (token_tree) @_arguments) (#match? @_arguments "^\\("))
(token_tree [(identifier) (self) (crate) (primitive_type)] @receiver . "::" . (identifier) @ref.attribute)
((token_tree [(identifier) (self) (crate) (primitive_type)] @receiver . "::" . (identifier) @ref.call . (token_tree) @_arguments)
  (#match? @_arguments "^\\("))
(token_tree . [(identifier) (self)] @receiver . "." . (identifier) @ref.attribute)
(token_tree ["," "=" "&" ";" "=>" "!" "==" "!=" "+" "-" "*" "<" ">"] . [(identifier) (self)] @receiver . "." .
  (identifier) @ref.attribute)

(metavariable) @skip

; ---- what functions bind
[(closure_expression) (match_arm) (for_expression) (if_expression) (while_expression) (impl_item) (trait_item)
  (struct_item) (enum_item) (type_item) (function_signature_item)] @scope
(parameter pattern: (identifier) @local type: (_) @local.type)
(parameter pattern: (mut_pattern (identifier) @local) type: (_) @local.type)
(closure_parameters (identifier) @local)
(let_declaration pattern: (identifier) @local type: (_)? @local.type value: (_)? @local.value)
(let_declaration pattern: (mut_pattern (identifier) @local) type: (_)? @local.type value: (_)? @local.value)
(let_declaration pattern: (tuple_pattern (identifier) @local))
(let_declaration pattern: (tuple_pattern (mut_pattern (identifier) @local)))
(for_expression pattern: (identifier) @local)
(for_expression pattern: (tuple_pattern (identifier) @local))
(tuple_struct_pattern type: (_) (identifier) @local)
(tuple_struct_pattern type: (_) (ref_pattern (identifier) @local))
(tuple_struct_pattern type: (_) (mut_pattern (identifier) @local))
(captured_pattern . (identifier) @local)
(ref_pattern (identifier) @local)
(mut_pattern (identifier) @local)
(ref_pattern (mut_pattern (identifier) @local))
(reference_pattern (identifier) @local)
(tuple_pattern (identifier) @local)
(field_pattern name: (shorthand_field_identifier) @local)
(field_pattern pattern: (identifier) @local)
(closure_parameters (tuple_pattern (identifier) @local))
