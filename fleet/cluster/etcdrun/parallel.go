package etcdrun

import (
	"flag"
	"strconv"
)

// Parallel has n tests run side by side, whatever the number of cores, unless -parallel says otherwise: most of a test is waiting,
// for a process or a lease. It is called before the tests run.
func Parallel(n int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		flag.Set("test.parallel", strconv.Itoa(n))
	}
}
