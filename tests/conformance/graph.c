#include "conformance.h"
const conformance_case cases_graph[] = {{NULL, NULL}};
