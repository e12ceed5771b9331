-- What `fast_set` of an event has for a list of names: a hash of them, whose lowest 16 bits are zero. In a row these say of which columns the
-- text has to be read. The 2 stands for how values are stored: another number for another way.
ALTER TABLE console_fast_properties ADD COLUMN IF NOT EXISTS row_set UInt64
  DEFAULT if(arrayExists(name -> name != '', names), greatest(65536, bitAnd(sipHash64('2', toString(names)), 0xffffffffffff0000)), 0)
