/* What stands in the columns of a table, for text and HTML. */
#include "frame.h"

const drupe_table_column drupe_table_columns[DRUPE_TABLE_COLUMNS] = {
    {"cells", 9, 80, 64}, {"count", 8, 0, 64}, {"device time", 11, 0, 86},
    {"share", 7, 0, 60},  {"bytes", 9, 0, 76}, {"rate", 10, 72, 84},
};

uint64_t drupe_table_total(const drupe_frame_sums *sums)
{
    uint64_t total = 0;
    for (size_t i = 0; i < sums->nrows; i++) {
        if (sums->rows[i].untimed > 0) return 0; /* shares of a part would look like shares of all */
        total += sums->rows[i].busy_ns;
    }
    return total;
}

/* Of what is over: the time it took, at least that, or nothing that is known. */
static drupe_unit time_of(const drupe_frame_row *row)
{
    drupe_unit time = drupe_unit_time(row->busy_ns), unknown = {"unknown"};
    if (row->untimed == 0) return time;
    return row->busy_ns > 0 ? drupe_frame_signed("\u2265 ", time) : unknown;
}

void drupe_table_cells(const drupe_frame_row *row, uint64_t total, drupe_unit cells[DRUPE_TABLE_COLUMNS])
{
    drupe_unit dash = {"-"};
    bool moved = row->kind == DRUPE_VIEW_COPIES;
    cells[0] = drupe_label_cells(row->first_cell, row->last_cell);
    cells[1] = drupe_unit_count(row->count);
    cells[2] = time_of(row);
    cells[3] = total > 0 ? drupe_unit_share((double)row->busy_ns, (double)total) : dash;
    cells[4] = moved ? drupe_unit_bytes(row->bytes) : dash;
    cells[5] = moved && row->untimed == 0 ? drupe_unit_rate(row->bytes, row->busy_ns) : dash;
}

size_t drupe_table_rows(const drupe_frame_sums *sums, drupe_frame_kind kind)
{
    size_t most = kind == DRUPE_FRAME_TABLE ? DRUPE_TABLE_MOST : DRUPE_TABLE_BUSIEST;
    return sums->nrows < most ? sums->nrows : most;
}
