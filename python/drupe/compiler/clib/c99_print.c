// Output: straight to the process's descriptor 1, as that of drivers; C's streams have locks.

//: print :
int dprintf(int, const char *, ...);
