INSERT INTO writer_epochs (group_id, incarnation, generation, leader_id)
SELECT {group:String}, {incarnation:UInt32}, {generation:UInt32}, {leaderId:String}
