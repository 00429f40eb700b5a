#include "conformance.h"
const conformance_case cases_program[] = {{NULL, NULL}};
