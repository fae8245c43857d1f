# A header as Doxygen reads it: its plain comments as documentation, what they indent (lists of errors,
# drawings) as it stands. The comment at the file's beginning is also that of the first class or
# struct that has none, since it speaks of that one.
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
  # Behind a member. Not behind a brace or a directive, where it says what ends.
  if (text !~ /^ *[#}]/) sub(/  \/\/ /, "  ///< ", text)
  print text
}
