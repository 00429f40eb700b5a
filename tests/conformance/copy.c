#include "conformance.h"
const conformance_case cases_copy[] = {{NULL, NULL}};
