#include "conformance.h"
const conformance_case cases_time[] = {{NULL, NULL}};
