; Ruby: units and definitions. docs/languages.md says what the captures mean.

(comment) @comment
[(ERROR) (MISSING)] @error

; ---- units
(program (call !receiver method: (identifier) @_require) @unit.import
  (#any-of? @_require "require" "require_relative" "load" "autoload"))
[(body_statement) (block_body) (then) (else) (do) (ensure) (begin) (case) (case_match) (array) (hash)] @unit.block
[(rescue) (ensure) (else)] @unit.clause
(heredoc_body) @unit.tail
(body_statement (identifier) @unit.keep (#any-of? @unit.keep "private" "public" "protected" "module_function"))

; ---- modules and classes
(module name: (_) @name) @def.namespace
(class name: (_) @name) @def.class
(class name: (_) @name superclass: (superclass (_) @base)) @def.class
(class name: (_) @name body: (body_statement (call !receiver method: (identifier) @_include
  arguments: (argument_list [(constant) (scope_resolution)] @base)))
  (#any-of? @_include "include" "prepend" "extend")) @def.class
(assignment left: (constant) @name right: (call receiver: (constant) @base method: (identifier) @_new block: (_))
  (#eq? @_new "new") (#any-of? @base "Struct" "Class" "Data" "Module")) @def.class
(assignment left: (constant) @name right: (call receiver: (constant) @base method: (identifier) @_define)
  (#any-of? @_define "new" "define") (#any-of? @base "Struct" "Data")) @def.class

; ---- methods
(method name: (_) @name) @def.function
(singleton_method object: (self) name: (_) @name) @def.function
(singleton_method object: (constant) @owner name: (_) @name) @def.method
((call !receiver method: (identifier) @_define arguments: (argument_list . [(simple_symbol) (string)] @name)
  block: (_)) @def.method
  (#any-of? @_define "define_method" "define_singleton_method"))

; ---- constants, attributes, instance variables
(assignment left: (constant) @name) @def.constant
(assignment left: (left_assignment_list (constant) @name)) @def.constant
((body_statement (call !receiver method: (identifier) @_attribute arguments: (argument_list (simple_symbol) @name)) @def.field)
  (#match? @_attribute "^(c|m|class_|thread_m)?attr(ibute)?(_accessor|_reader|_writer)?$"))
((call receiver: (constant) @_struct method: (identifier) @_new arguments: (argument_list (simple_symbol) @name)) @def.field
  (#any-of? @_struct "Struct" "Data") (#any-of? @_new "new" "define"))
(method body: (body_statement (assignment left: (instance_variable) @name @owner.self) @def.field))
(method body: (body_statement (operator_assignment left: (instance_variable) @name @owner.self) @def.field))

; ---- tests: RSpec, minitest/spec, test-unit, shoulda
((call method: (identifier) @_suite arguments: (argument_list . (_) @name) block: (_)) @def.suite
  (#any-of? @_suite "describe" "context" "feature" "shared_examples" "shared_examples_for" "shared_context"
    "fdescribe" "xdescribe" "fcontext" "xcontext"))
((call !receiver method: (identifier) @_test arguments: (argument_list . [(string) (chained_string) (simple_symbol)] @name)
  block: (_)) @def.test
  (#any-of? @_test "it" "specify" "example" "scenario" "test" "should" "fit" "xit" "its" "focus"))
((call !receiver method: (identifier) @name !arguments block: (_)) @def.test
  (#any-of? @name "it" "specify" "example"))
((call !receiver method: (identifier) @_let arguments: (argument_list . (simple_symbol) @name) block: (_)) @def.fixture
  (#any-of? @_let "let" "let!" "subject" "subject!" "given"))
((call !receiver method: (identifier) @name block: (_)) @def.fixture
  (#any-of? @name "before" "after" "around" "setup" "teardown" "background"))
((call !receiver method: (identifier) @name !arguments block: (_)) @def.fixture (#eq? @name "subject"))

; ---- references
[(identifier) (constant)] @ref
(constant) @ref.type
(scope_resolution scope: (_) @receiver name: (constant) @ref.type)
(call method: [(identifier) (constant)] @ref.call)
(call receiver: (_) @receiver method: [(identifier) (constant)] @ref.call)
(superclass [(constant) @ref.base (scope_resolution name: (constant) @ref.base)])
((call method: (identifier) @_include arguments: (argument_list [(constant) @ref.base
  (scope_resolution name: (constant) @ref.base)])) (#any-of? @_include "include" "extend" "prepend"))

; ---- no uses
(pair key: (hash_key_symbol) @skip)
(keyword_parameter name: (identifier) @skip)
(alias (identifier) @skip)

; ---- what methods bind
[(block) (do_block) (lambda)] @scope
(method_parameters (identifier) @local)
(block_parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(optional_parameter name: (identifier) @local)
(splat_parameter name: (identifier) @local)
(hash_splat_parameter name: (identifier) @local)
(block_parameter name: (identifier) @local)
(keyword_parameter name: (identifier) @local)
(destructured_parameter (identifier) @local)
(assignment left: (identifier) @local right: (_) @local.value)
(operator_assignment left: (identifier) @local)
(left_assignment_list (identifier) @local)
(left_assignment_list (rest_assignment (identifier) @local))
(destructured_left_assignment (identifier) @local)
(exception_variable (identifier) @local)
(for pattern: (identifier) @local)
