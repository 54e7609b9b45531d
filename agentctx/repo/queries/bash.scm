; Bash: units and definitions. docs/languages.md says what the captures mean.

(comment) @comment
[(ERROR) (MISSING)] @error

; ---- units
((command name: (command_name (word) @_source)) @unit.import (#any-of? @_source "source" "." "load"))
[(compound_statement) (do_group) (if_statement) (elif_clause) (else_clause) (case_statement) (case_item) (array)] @unit.block
[(elif_clause) (else_clause)] @unit.clause
(subshell) @unit.nonempty

; ---- definitions
(function_definition name: (word) @name) @def.function
(program (variable_assignment name: (variable_name) @name) @def.constant)
(program (variable_assignments (variable_assignment name: (variable_name) @name) @def.constant))
(program (declaration_command (variable_assignment name: (variable_name) @name)) @def.constant)

; ---- references
(command name: (command_name (word) @ref.call))
(command_substitution (command name: (command_name (word) @ref.call)))
(simple_expansion (variable_name) @ref.name)
(expansion (variable_name) @ref.name)
((command name: (command_name (word) @_source)) @import (#any-of? @_source "source" "."))
(declaration_command "local" (variable_assignment name: (variable_name) @local))
(declaration_command "local" (variable_name) @local)
(for_statement variable: (variable_name) @local)
