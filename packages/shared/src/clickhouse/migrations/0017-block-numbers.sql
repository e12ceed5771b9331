-- Each insert into `events` gets the next block number of the table at the moment at which its rows become visible. With
-- this setting a merge or a mutation keeps the number of each row, so that `_block_number` is the order of storage. It
-- costs an insert nothing: the rows of one insert share their number, and it is the name of their part.
-- docs/decisions/0025-order-of-storage.md explains what depends on it.
ALTER TABLE events MODIFY SETTING enable_block_number_column = 1
