// A cluster of kfake, franz-go's implementation of Kafka's protocol in memory. It ends with its standard input, and cuts
// the connections of its first broker at SIGUSR1.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

func main() {
	ports := flag.String("ports", "", "a port of each broker, comma-separated")
	lacks := flag.String("lacks", "", "what the brokers lack, comma-separated: see edits.go")
	version := flag.String("version", "", "the release of Kafka whose versions of requests the brokers know; default: all")
	flag.Parse()

	var numbers []int
	for _, port := range strings.Split(*ports, ",") {
		number, err := strconv.Atoi(port)
		if err != nil {
			log.Fatalf("-ports: %v", err)
		}
		numbers = append(numbers, number)
	}
	lacking := strings.FieldsFunc(*lacks, func(r rune) bool { return r == ',' })
	for _, lack := range lacking {
		if !slices.Contains(allLacks, lack) {
			log.Fatalf("-lacks: %s is none of %s", lack, strings.Join(allLacks, ", "))
		}
	}
	var first *editedListener
	options := []kfake.Opt{
		kfake.NumBrokers(len(numbers)),
		kfake.Ports(numbers...),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			listener, err := net.Listen(network, address)
			if err != nil {
				return nil, err
			}
			edited := &editedListener{Listener: listener, lacks: lacking}
			if first == nil {
				first = edited
			}
			return edited, nil
		}),
	}
	if *version != "" {
		versions := kversion.FromString(*version)
		if versions == nil {
			log.Fatalf("-version: there is no %s", *version)
		}
		options = append(options, kfake.MaxVersions(versions))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening at %s", strings.Join(cluster.ListenAddrs(), ", "))

	cuts := make(chan os.Signal, 1)
	signal.Notify(cuts, syscall.SIGUSR1)
	go func() {
		for range cuts {
			first.cut()
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	cluster.Close()
}
