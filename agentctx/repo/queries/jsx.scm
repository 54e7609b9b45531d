; Components in JSX: of JavaScript and TSX. Tags in small letters are the platform's.

([(jsx_opening_element name: (identifier) @ref.call) (jsx_self_closing_element name: (identifier) @ref.call)]
  (#match? @ref.call "^[A-Z_$]"))
[(jsx_opening_element name: (member_expression property: (_) @ref.call))
 (jsx_self_closing_element name: (member_expression property: (_) @ref.call))]
([(jsx_opening_element name: (identifier) @skip) (jsx_self_closing_element name: (identifier) @skip)]
  (#match? @skip "^[a-z]"))
(jsx_closing_element name: (identifier) @skip)
