# Writes tests of several files as one source:
#   cmake -DJOINED=FILE -DSOURCES=A_test.cc,B_test.cc -DRELATIVE_TO=BUILD_DIR -P tests/join_tests.cmake
# The unnamed namespace of each file of tests is put into a namespace that is named after the file, so that two
# files may have helpers of the same name. In a fuzzer's source the unnamed namespace stays as it is, because the
# fuzzer's entry point stands outside of it.
# Compilers, debuggers and GoogleTest still see each file's own name and lines.
string(REPLACE "," ";" SOURCES "${SOURCES}")
set(joined "")
foreach(source ${SOURCES})
  file(READ ${source} text)
  # The joined file has no absolute paths, so it is the same in every clone. Then ccache can use what another
  # clone has compiled.
  file(RELATIVE_PATH path ${RELATIVE_TO} ${source})
  string(MAKE_C_IDENTIFIER ${path} space)
  string(REGEX REPLACE "^_+" "" space ${space})
  if(NOT source MATCHES "_fuzzer\\.cc$")
    string(REPLACE "\nnamespace {\n" "\nnamespace ${space} { namespace {\n" text "${text}")
    string(REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" text "${text}")
  endif()
  string(APPEND joined "#line 1 \"${path}\"\n${text}")
endforeach()
file(WRITE ${JOINED} "${joined}")
