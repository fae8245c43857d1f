# cmake -DOUTPUT=out.cc -DCHIPS=a.textproto;.. -DMODELS=b.textproto;.. -P embed_texts.cmake
# Writes the definitions of ShippedChips() and ShippedModels(): each file's name and text.
function(append_list out function files)
  set(text "absl::Span<const ShippedFile> ${function}() {\n  static constexpr ShippedFile kFiles[] = {\n")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} content)
    string(APPEND text "      {\"${name}\", R\"textproto(${content})textproto\"},\n")
  endforeach()
  string(APPEND text "  };\n  return kFiles;\n}\n\n")
  file(APPEND ${out} "${text}")
endfunction()

file(WRITE ${OUTPUT} "#include \"client/emulator/shipped/shipped_files.h\"\n\nnamespace systole::emulator {\n\n")
append_list(${OUTPUT} ShippedChips "${CHIPS}")
append_list(${OUTPUT} ShippedModels "${MODELS}")
file(APPEND ${OUTPUT} "}  // namespace systole::emulator\n")
