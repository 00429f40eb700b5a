#include "conformance.h"
const conformance_case cases_keep[] = {{NULL, NULL}};
