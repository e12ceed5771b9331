package main

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What brokers may lack. kfake itself stores the times of producers, whatever message.timestamp.type says: what it reads
// and writes is edited, so that it has LogAppendTime.
const (
	// Kafka's time of a record, in the record and in its acknowledgement: kfake as it is.
	appendTime = "append-time"
	// The time in the acknowledgement, as Redpanda before 25.3.
	acknowledgedTime = "acknowledged-time"
	// The time in records that are fetched.
	recordTime = "record-time"
	// The epoch of the leader in records that are fetched.
	leaderEpoch = "leader-epoch"
	// The metadata of committed offsets.
	commitMetadata = "commit-metadata"
	// The offset of the first record since a time: it is always that of the first record.
	offsetsByTime = "offsets-by-time"
)

var allLacks = []string{appendTime, acknowledgedTime, recordTime, leaderEpoch, commitMetadata, offsetsByTime}

// Where the fields of a record batch are.
const (
	batchLengthAt     = 8
	batchEpochAt      = 12
	batchChecksumAt   = 17
	batchAttributesAt = 21
	batchFirstTimeAt  = 27
	batchMaxTimeAt    = 35
	isLogAppendTime   = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type editedListener struct {
	net.Listener
	lacks []string
	mutex sync.Mutex
	open  []net.Conn
}

func (l *editedListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open = append(l.open, connection)
	return &editedConn{Conn: connection, lacks: l.lacks, asked: map[uint32]asked{}}, nil
}

// cut closes the connections that are open.
func (l *editedListener) cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, connection := range l.open {
		connection.Close()
	}
	l.open = nil
}

// asked is what a response belongs to.
type asked struct {
	key, version int16
	// When it came, in milliseconds since 1970.
	at int64
}

// editedConn edits each request before kfake reads it, and each response that kfake writes.
type editedConn struct {
	net.Conn
	lacks []string
	// The rest of a request that kfake is reading.
	rest  []byte
	mutex sync.Mutex
	asked map[uint32]asked
}

func (c *editedConn) lack(what string) bool {
	return slices.Contains(c.lacks, what)
}

func (c *editedConn) Read(into []byte) (int, error) {
	if len(c.rest) == 0 {
		size := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, size); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(size))
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		c.rest = append(size, c.editRequest(body)...)
	}
	n := copy(into, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// editRequest keeps what a response belongs to, and gives the records of a producer the time of the broker.
func (c *editedConn) editRequest(body []byte) []byte {
	request := asked{
		key:     int16(binary.BigEndian.Uint16(body)),
		version: int16(binary.BigEndian.Uint16(body[2:])),
		at:      time.Now().UnixMilli(),
	}
	c.mutex.Lock()
	c.asked[binary.BigEndian.Uint32(body[4:])] = request
	c.mutex.Unlock()
	if request.key != int16(kmsg.Produce) || c.lack(appendTime) {
		return body
	}
	produce := kmsg.NewPtrProduceRequest()
	produce.SetVersion(request.version)
	header := 10 + max(0, int(int16(binary.BigEndian.Uint16(body[8:]))))
	if produce.IsFlexible() {
		header++
	}
	if err := produce.ReadFrom(body[header:]); err != nil {
		return body
	}
	for _, topic := range produce.Topics {
		for _, partition := range topic.Partitions {
			eachBatch(partition.Records, func(batch []byte) { stamp(batch, request.at) })
		}
	}
	return produce.AppendTo(slices.Clone(body[:header]))
}

// Write gets a whole response.
func (c *editedConn) Write(frame []byte) (int, error) {
	correlation := binary.BigEndian.Uint32(frame[4:])
	c.mutex.Lock()
	request := c.asked[correlation]
	delete(c.asked, correlation)
	c.mutex.Unlock()
	_, err := c.Conn.Write(c.editResponse(request, frame))
	return len(frame), err
}

func (c *editedConn) editResponse(request asked, frame []byte) []byte {
	response := kmsg.ResponseForKey(request.key)
	response.SetVersion(request.version)
	header := 8
	if response.IsFlexible() {
		header++
	}
	switch response.(type) {
	case *kmsg.ProduceResponse, *kmsg.FetchResponse, *kmsg.ListOffsetsResponse, *kmsg.OffsetFetchResponse:
	default:
		return frame
	}
	if err := response.ReadFrom(slices.Clone(frame[header:])); err != nil {
		return frame
	}
	switch edited := response.(type) {
	case *kmsg.ProduceResponse:
		for t := range edited.Topics {
			for p := range edited.Topics[t].Partitions {
				partition := &edited.Topics[t].Partitions[p]
				if partition.ErrorCode == 0 && !c.lack(appendTime) && !c.lack(acknowledgedTime) {
					partition.LogAppendTime = request.at
				}
			}
		}
	case *kmsg.FetchResponse:
		for _, topic := range edited.Topics {
			for _, partition := range topic.Partitions {
				eachBatch(partition.RecordBatches, c.editFetched)
			}
		}
	case *kmsg.ListOffsetsResponse:
		for t := range edited.Topics {
			for p := range edited.Topics[t].Partitions {
				partition := &edited.Topics[t].Partitions[p]
				// What is asked for by time is answered with a time.
				if c.lack(offsetsByTime) && partition.Timestamp >= 0 {
					partition.Offset = 0
				}
			}
		}
	case *kmsg.OffsetFetchResponse:
		for t := range edited.Topics {
			for p := range edited.Topics[t].Partitions {
				if c.lack(commitMetadata) {
					edited.Topics[t].Partitions[p].Metadata = nil
				}
			}
		}
	}
	out := response.AppendTo(slices.Clone(frame[:header]))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

func (c *editedConn) editFetched(batch []byte) {
	if !c.lack(appendTime) {
		batch[batchAttributesAt+1] |= isLogAppendTime
	}
	if c.lack(recordTime) {
		setTimes(batch, 0)
	}
	if c.lack(leaderEpoch) {
		binary.BigEndian.PutUint32(batch[batchEpochAt:], ^uint32(0))
	}
	setChecksum(batch)
}

// stamp gives a batch the time at which it came, as a broker does that has LogAppendTime. The times of its records count
// from it, and none does once fetched batches say so.
func stamp(batch []byte, ms int64) {
	setTimes(batch, ms)
	setChecksum(batch)
}

func setTimes(batch []byte, ms int64) {
	binary.BigEndian.PutUint64(batch[batchFirstTimeAt:], uint64(ms))
	binary.BigEndian.PutUint64(batch[batchMaxTimeAt:], uint64(ms))
}

func setChecksum(batch []byte) {
	binary.BigEndian.PutUint32(batch[batchChecksumAt:], crc32.Checksum(batch[batchAttributesAt:], castagnoli))
}

// eachBatch calls edit with each whole record batch.
func eachBatch(records []byte, edit func(batch []byte)) {
	for len(records) >= batchMaxTimeAt+8 {
		end := batchLengthAt + 4 + int(binary.BigEndian.Uint32(records[batchLengthAt:]))
		if end > len(records) {
			return
		}
		edit(records[:end])
		records = records[end:]
	}
}
