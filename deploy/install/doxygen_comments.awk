# Turns a header into what Doxygen reads. Plain comments become documentation. Indented lines in them (lists
# of errors, drawings) stay as they are. The comment at the file's beginning also becomes that of the first
# class or struct if that has none, because it describes this class.
function say(text) {
  print text
  if (!left_head) head = head text "\n"
}
FNR == 1 { print "/** @file */" }
/^ *\/\/( |$)/ {
  text = $0
  sub(/^ *\/\//, "", text)
  if (!commented) say("/**")
  if (text ~ /^   / && !indented) {
    say("@verbatim")
    indented = 1
  } else if (text !~ /^   / && text != "" && indented) {
    say("@endverbatim")
    indented = 0
  }
  say(text)
  commented = 1
  next
}
{
  if (indented) say("@endverbatim")
  if (commented) say("*/")
  left_head = 1
}
/^(class|struct) [A-Za-z]+( final)?( :.*)? \{/ {
  if (!commented && !of_template && !told) printf "%s", head
  told = 1
}
{
  of_template = commented && /^template/
  indented = 0
  commented = 0
  text = $0
  # A comment behind a member describes the member. Behind a brace or a directive it says what ends there.
  if (text !~ /^ *[#}]/) sub(/  \/\/ /, "  ///< ", text)
  print text
}
