INSERT INTO writer_epochs (group_id, incarnation, generation)
SELECT {group:String}, {incarnation:UInt32}, {generation:UInt32}
