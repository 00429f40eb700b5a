/* What stands in the columns of a table, for text and HTML. */
#include "frame.h"

const drupe_table_column drupe_table_columns[DRUPE_TABLE_COLUMNS] = {
    {"cells", 9, 80}, {"count", 8, 0}, {"device time", 11, 0},
    {"share", 7, 0},  {"bytes", 9, 0}, {"rate", 10, 72},
};

uint64_t drupe_table_total(const drupe_frame_sums *sums)
{
    uint64_t total = 0;
    for (size_t i = 0; i < sums->nrows; i++) total += sums->rows[i].busy_ns;
    return total;
}

void drupe_table_cells(const drupe_frame_row *row, uint64_t total, drupe_unit cells[DRUPE_TABLE_COLUMNS])
{
    drupe_unit dash = {"-"};
    bool moved = row->kind == DRUPE_VIEW_COPIES;
    cells[0] = drupe_label_cells(row->first_cell, row->last_cell);
    cells[1] = drupe_unit_count(row->count);
    cells[2] = drupe_unit_time(row->busy_ns);
    cells[3] = drupe_unit_share((double)row->busy_ns, (double)total);
    cells[4] = moved ? drupe_unit_bytes(row->bytes) : dash;
    cells[5] = moved ? drupe_unit_rate(row->bytes, row->busy_ns) : dash;
}

size_t drupe_table_rows(const drupe_frame_sums *sums, drupe_frame_kind kind)
{
    size_t most = kind == DRUPE_FRAME_TABLE ? DRUPE_TABLE_MOST : DRUPE_TABLE_BUSIEST;
    return sums->nrows < most ? sums->nrows : most;
}
