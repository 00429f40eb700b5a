#include "conformance.h"
const conformance_case cases_device[] = {{NULL, NULL}};
