// Asks pickd for an endpoint and reports on it: pick MODEL PROMPT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: pick MODEL PROMPT")
	}
	client, err := pickd.Open(pickd.Options{}) // $PICKD_SOCKET, else /run/pickd/pickd.sock
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	pick, err := client.Pick(ctx, pickd.Request{Model: os.Args[1], Text: []string{os.Args[2]}})
	if err != nil {
		log.Fatalf("%v: HTTP status %d", err, pickd.HTTPStatus(err))
	}
	fmt.Printf("%s (%s), %d of %d tokens cached\n", pick.Address(), pick.Reason,
		pick.Endpoints[0].MatchTokens, pick.PromptTokens)

	// ... send the request there, or to the next of pick.Endpoints where that fails ...

	report := pickd.Report{Ticket: pick.Ticket, Kind: pickd.Done, OutputTokens: pickd.Tokens(12)}
	if err := client.Report(context.Background(), report); err != nil {
		log.Print(err)
	}
}
