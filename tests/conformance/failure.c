#include "conformance.h"
const conformance_case cases_failure[] = {{NULL, NULL}};
