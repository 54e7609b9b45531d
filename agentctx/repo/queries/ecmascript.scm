; What JavaScript and TypeScript share: units and definitions. docs/languages.md says what the captures mean.

(comment) @comment
[(ERROR) (MISSING)] @error

; ---- units
(import_statement) @unit.import
(program [(lexical_declaration . (variable_declarator value: [
    (call_expression function: (identifier) @_require)
    (member_expression object: (call_expression function: (identifier) @_require))
    (call_expression function: (call_expression function: (identifier) @_require))]))
  (variable_declaration . (variable_declarator value: [
    (call_expression function: (identifier) @_require)
    (member_expression object: (call_expression function: (identifier) @_require))
    (call_expression function: (call_expression function: (identifier) @_require))]) .)] @unit.import
  (#eq? @_require "require"))
(export_statement source: (_)) @unit.import
[(statement_block) (class_body) (object) (array) (switch_body) (switch_case) (switch_default)] @unit.block

; ---- functions
[(function_declaration name: (_) @name) (generator_function_declaration name: (_) @name)] @def.function
(export_statement "default" @name value: [(function_expression !name) (arrow_function) (generator_function !name)])
  @def.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])
  @def.function
(variable_declarator name: (identifier) @name value: (class)) @def.class

; members that are given functions: `exports.f = function`, `A.prototype.f = function`, `a.b = a.c = () => ..`
(program (expression_statement (assignment_expression
  left: (member_expression object: (_) @owner property: (property_identifier) @name)
  right: [
    (function_expression) (arrow_function) (generator_function)
    (assignment_expression right: [(function_expression) (arrow_function) (generator_function)])
  ]) @def.method))
(program (expression_statement (assignment_expression right: (assignment_expression
  left: (member_expression object: (_) @owner property: (property_identifier) @name)
  right: [(function_expression) (arrow_function) (generator_function)]) @def.method)))
(program (expression_statement (assignment_expression
  left: (member_expression property: (property_identifier) @name) right: (class)) @def.class))

; objects of a module: what they hold are members of what they are assigned to
(program [
  (_ (variable_declarator name: (identifier) @owner value: (object [
    (method_definition name: (_) @name) @def.method
    (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.method
    (pair key: (property_identifier) @name value: (_) @value) @def.field])))
  (export_statement declaration: (_ (variable_declarator name: (identifier) @owner value: (object [
    (method_definition name: (_) @name) @def.method
    (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.method
    (pair key: (property_identifier) @name value: (_) @value) @def.field]))))
  (expression_statement (assignment_expression left: (_) @owner right: (object [
    (method_definition name: (_) @name) @def.method
    (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.method
    (pair key: (property_identifier) @name value: (_) @value) @def.field])))
  (export_statement "default" @owner value: (object [
    (method_definition name: (_) @name) @def.method
    (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.method
    (pair key: (property_identifier) @name value: (_) @value) @def.field]))
])
; `exports.limit = 1`, `app.settings = {}`; what a module hands out as a whole
((program (expression_statement (assignment_expression
  left: (member_expression object: [(identifier) (member_expression)] @owner property: (property_identifier) @name)
  right: [
    (assignment_expression) (array) (await_expression) (binary_expression) (call_expression) (member_expression)
    (new_expression) (number) (object) (regex) (string) (template_string) (ternary_expression) (true) (false)
    (null) (undefined) (unary_expression)
  ] @value) @def.field)) (#not-eq? @owner "module"))
((program (expression_statement (assignment_expression
  left: (member_expression object: [(identifier) (member_expression)] @owner property: (property_identifier) @name)
  right: (identifier) @value) @def.field)) (#not-match? @owner "^(module|exports|module\\.exports)$"))
((program [(lexical_declaration (variable_declarator value: (assignment_expression
    left: (member_expression object: (_) @owner property: (property_identifier) @name) right: (_) @value) @def.field))
  (variable_declaration (variable_declarator value: (assignment_expression
    left: (member_expression object: (_) @owner property: (property_identifier) @name) right: (_) @value) @def.field))])
  (#any-of? @owner "exports" "module.exports"))
((program (expression_statement (assignment_expression
  left: (member_expression object: (identifier) @_module property: (property_identifier) @name)
  right: [(object) (new_expression) (call_expression function: (_) @_call) (member_expression)] @value) @def.constant))
  (#eq? @_module "module") (#eq? @name "exports") (#not-eq? @_call "require"))
(export_statement "default" @name value: [(call_expression) (new_expression) (object) (member_expression)] @value)
  @def.constant

; ---- classes
(class_declaration name: (_) @name) @def.class
(class_declaration decorator: (decorator [
  (identifier) @decorator (member_expression) @decorator (call_expression function: (_) @decorator)])
  name: (_) @name) @def.class
(export_statement decorator: (decorator [
  (identifier) @decorator (member_expression) @decorator (call_expression function: (_) @decorator)])
  declaration: (class_declaration name: (_) @name) @def.class)
(class_body (method_definition name: (_) @name) @def.method)
; what methods assign to `this`
(expression_statement (assignment_expression left: (member_expression
  object: (this) @owner.self property: [(property_identifier) (private_property_identifier)] @name) right: (_) @value))
  @def.field

; ---- constants of the module
(program (_ (variable_declarator name: [
  (identifier) @name
  (object_pattern [
    (shorthand_property_identifier_pattern) @name
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
    (pair_pattern value: (identifier) @name)])
  (array_pattern (identifier) @name)]) @def.constant))
(program (export_statement declaration: (_ (variable_declarator name: [
  (identifier) @name
  (object_pattern (shorthand_property_identifier_pattern) @name)]) @def.constant)))
; what the grammar makes of a module that it can't read as a whole
(ERROR [(lexical_declaration (variable_declarator name: (identifier) @name) @def.constant)
  (export_statement declaration: (_ (variable_declarator name: (identifier) @name) @def.constant))])

; ---- what calling a function gives, and what fields hold
(function_declaration name: (_) @name body: (statement_block (return_statement (_) @returned)))
(method_definition name: (_) @name body: (statement_block (return_statement (_) @returned)))
(_ [name: (identifier) @name key: (property_identifier) @name left: (member_expression property: (_) @name)]
  [
    value: (arrow_function body: [(statement_block (return_statement (_) @returned)) (expression) @returned])
    right: (arrow_function body: [(statement_block (return_statement (_) @returned)) (expression) @returned])
    value: (function_expression body: (statement_block (return_statement (_) @returned)))
    right: (function_expression body: (statement_block (return_statement (_) @returned)))
  ])

; ---- tests: `it('does', () => {})`, `test.each(table)('does', fn)`, `describe('x', fn)`, `beforeEach(fn)`
((call_expression
  function: [
    (identifier) @_call
    (member_expression object: (identifier) @_call)
    (member_expression object: (member_expression object: (identifier) @_call))
    (call_expression function: (member_expression object: (identifier) @_call))
  ]
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)])) @def.test
  (#any-of? @_call "it" "test" "specify" "fit" "xit" "xtest" "bench"))
((call_expression
  function: [
    (identifier) @_call
    (member_expression object: (identifier) @_call)
    (call_expression function: (member_expression object: (identifier) @_call))
  ]
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)])) @def.suite
  (#any-of? @_call "describe" "suite" "context" "fdescribe" "xdescribe"))
((call_expression
  function: (identifier) @name
  arguments: (arguments [(arrow_function) (function_expression)])) @def.fixture
  (#any-of? @name "before" "after" "beforeEach" "afterEach" "beforeAll" "afterAll"))

; ---- references
[(identifier) (shorthand_property_identifier)] @ref
(member_expression object: (_) @receiver property: [(property_identifier) (private_property_identifier)] @ref.attribute)
(call_expression function: (identifier) @ref.call)
(call_expression function: (super) @ref.call)
(call_expression function: (member_expression property: (_) @ref.call))
(new_expression constructor: (identifier) @ref.call)
(new_expression constructor: (member_expression property: (_) @ref.call))
(decorator [(identifier) @ref.decorator (member_expression property: (_) @ref.decorator)])
(decorator (call_expression function: [(identifier) @ref.decorator (member_expression property: (_) @ref.decorator)]))

; ---- no uses
(import_specifier name: (identifier) @skip)
(import_specifier alias: (identifier) @skip)
(import_clause (identifier) @skip)
(namespace_import (identifier) @skip)
(namespace_export (identifier) @skip)
(export_statement (export_clause (export_specifier) @_none) source: (_)) @export.other
(export_specifier alias: (identifier) @skip)
(labeled_statement label: (statement_identifier) @skip)
(member_expression object: (identifier) @skip (#any-of? @skip "exports" "module"))
(expression_statement (assignment_expression
  left: (identifier) @skip (#eq? @skip "exports")))

; ---- exports and CommonJS imports
(export_statement !source (export_clause (export_specifier name: (_) @export.local alias: (_) @export.name) @export))
(export_statement !source (export_clause (export_specifier name: (_) @export.name !alias) @export))
(assignment_expression left: (member_expression object: [(identifier) (member_expression)] @_exports
  property: (property_identifier) @export.name) right: (identifier) @export.local
  (#match? @_exports "^(module\\.)?exports$")) @export
(export_statement "default" value: (identifier) @export.local) @export
(export_statement "default" declaration: (_ name: (_) @export.local)) @export
(assignment_expression left: (_) @_exports right: [
    (identifier) @export.local
    (function_expression name: (identifier) @export.local)
    (class name: (_) @export.local)
    (assignment_expression right: [
      (identifier) @export.local
      (function_expression name: (identifier) @export.local)
      (class name: (_) @export.local)])]
  (#any-of? @_exports "module.exports" "exports")) @export.whole
(assignment_expression left: (member_expression object: (identifier) @_module
  property: (property_identifier) @export.local)
  right: [(object) (new_expression) (call_expression function: (_) @_call) (member_expression)]
  (#eq? @_module "module") (#eq? @export.local "exports") (#not-eq? @_call "require")) @export.whole
(assignment_expression left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
  right: (object [
    (shorthand_property_identifier) @export.name
    (pair key: (property_identifier) @export.name value: (identifier) @export.local)] @export)
  (#eq? @_module "module") (#eq? @_exports "exports"))
; `var app = exports = module.exports = {}`
(variable_declarator name: (identifier) @export.local value: (assignment_expression
  left: (_) @_exports) (#any-of? @_exports "module.exports" "exports")) @export.whole
(variable_declarator value: [
  (call_expression function: (identifier) @_require)
  (await_expression (call_expression function: (import)))
  (member_expression object: (call_expression function: (identifier) @_require))]
  (#eq? @_require "require")) @import
(variable_declarator value: (await_expression (call_expression function: (import)))) @import
(variable_declarator value: (parenthesized_expression (await_expression (call_expression function: (import))))) @import
(assignment_expression right: [
  (call_expression function: (identifier) @_require)
  (member_expression object: (call_expression function: (identifier) @_require))]
  (#eq? @_require "require")) @import
(call_expression function: (identifier) @_require arguments: (arguments . (string)) (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string))) @import

; ---- what functions bind
[(arrow_function) (function_expression) (generator_function) (method_definition)] @scope
[(catch_clause) (for_statement) (for_in_statement)] @scope
(program (statement_block) @scope)
(arrow_function parameter: (identifier) @local)
(variable_declarator name: (identifier) @local)
(variable_declarator name: (identifier) @local value: (_) @local.value)
(variable_declarator name: (object_pattern [
  (shorthand_property_identifier_pattern) @local
  (object_assignment_pattern left: (shorthand_property_identifier_pattern) @local)
  (pair_pattern key: (property_identifier) @local.key value: (identifier) @local)]) value: (_) @local.whole)
(for_in_statement left: (identifier) @local)
(catch_clause parameter: (identifier) @local)
(shorthand_property_identifier_pattern) @local
(pair_pattern value: (identifier) @local)
(array_pattern (identifier) @local)
(array_pattern (assignment_pattern left: (identifier) @local))
(pair_pattern value: (assignment_pattern left: (identifier) @local))
(object_assignment_pattern left: (shorthand_property_identifier_pattern) @local)
(rest_pattern (identifier) @local)
(function_expression name: (identifier) @local)
