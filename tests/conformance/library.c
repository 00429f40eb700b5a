#include "conformance.h"
const conformance_case cases_library[] = {{NULL, NULL}};
