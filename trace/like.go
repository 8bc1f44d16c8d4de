package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Sites lists the clusters that Like knows.
func Sites() []string { return []string{"philly", "venus", "pai", "seren"} }

// Like returns the generator of jobs like those of a known cluster, at that cluster's rate, in whole seconds; Seed and
// Jobs are left to the caller, and anything may be changed. All parameters are published or measured in the published
// traces by others than this package, save what the site's comment says is inferred. The users of the sites but Venus
// are not published: their number and law are inferred to be those of Helios Saturn, the largest cluster of which they
// are.
//
// The error names the sites.
func Like(site string) (Generator, error) {
	g := Generator{Quantum: time.Second, Users: 364, UserLaw: Mandelbrot{S: 2.22, Q: 15.4}}
	switch site {
	case "philly":
		return likePhilly(g), nil
	case "venus":
		return likeVenus(g), nil
	case "pai":
		return likePAI(g), nil
	case "seren":
		return likeSeren(g), nil
	}
	return g, fmt.Errorf("site %q is not known%s, want one of %s", site, suggest.Hint(site, Sites()),
		strings.Join(Sites(), ", "))
}

// likePhilly is Microsoft's Philly (Jeon et al., ATC'19), 111,549 GPU jobs of 2017: rate and arrivals of its dense
// weeks, 2017-10-03 to 12-15, in the recorded clock; burst starts modulated by the smoother of the two published
// profiles. Odd widths are left out (0.04 % of jobs), end states are those of the summary published with Acme (Hu et
// al., NSDI'24), groups the virtual clusters by their jobs, of which those of four are a lower bound. Inferred: Sigma,
// for the published 1.05 is that of jobs per hour and holds what bursts add; with 0.9 for their starts, jobs per hour
// spread as they did (KS distance to the trace 0.11; 0.14 with 1.05). The gaps in a burst are exponential but for those
// that are 0, and a burst's virtual cluster is independent of its user and shape.
func likePhilly(g Generator) Generator {
	g.Profile = &Profile{PerHour: 56.5, Sigma: .9, Rho: .7,
		Hours: [24]float64{1.09, 1.03, 1.13, 1.09, .97, 1.10, 1.18, 1.14, 1.14, 1.04, .90, .85, .83, .77, .74, .78, .89,
			1.07, 1.09,
			1.00, .97, 1.06, 1.10, 1.06},
		Days:   [7]float64{1.07, 1.17, 1.07, 1.07, 1.11, .80, .67},
		Bursts: &Bursts{Single: .713, Alpha: 2.19, Max: 728, Gap: 6.6, Together: .13, SameGPUs: .93, SameDuration: .36},
	}
	const longest = 60 * 86400
	law := func(parts ...Part) Law { return Lognormal{Parts: parts, Max: longest} }
	g.Mix = PhillyMix()
	g.Mix = append(g.Mix, Width{GPUs: 128, Share: .0002})
	byClass(g.Mix, []widthClass{
		{1, law(Part{.148, 4.15, .17}, Part{.651, 7.30, 2.42}, Part{.201, 7.58, .66})},
		{3, law(Part{.491, 2.90, .36}, Part{.270, 5.38, 2.11}, Part{.238, 11.75, 1.31})},
		{7, law(Part{.529, 6.42, 1.93}, Part{.471, 11.35, 1.35})},
		{8, law(Part{.234, 5.10, 1.65}, Part{.488, 9.07, 1.96}, Part{.278, 12.31, 1.08})},
		{16, law(Part{.105, 3.82, .27}, Part{.404, 7.07, 2.02}, Part{.491, 11.13, 1.46})},
		{MaxGPUs, law(Part{.725, 7.01, 2.74}, Part{.275, 10.69, .81})},
	})
	g.Repeat = .3
	g.Groups = []Named{{"6214e9", 42020}, {"11cb48", 16909}, {"6c71a0", 11039}, {"b436b2", 7765}, {"ee9e8c", 5768},
		{"0e4a51", 2638},
		{"103959", 2099}, {"7f04ca", 1494}, {"ed69ec", 1299}, {"2869ce", 992}, {"e13805", 682}}
	g.States = []State{{"Pass", .604, .321}, {"Killed", .090, .294}, {"Failed", .305, .386}}
	return g
}

// likeVenus is Venus of SenseTime's Helios (Hu et al., SC'21), 125,303 GPU jobs of 2020: rate from 2020-04-01 on, local
// time. Widths are those of its trace, with odd ones of 0.1 % or more; laws are fitted below the 48 h at which the
// durations of that trace are clamped and go on above, to the 50 days of Helios's longest job. End states are those of
// all four Helios clusters, from the same summary. No virtual clusters: whose job is whose is not known.
func likeVenus(g Generator) Generator {
	g.Profile = &Profile{PerHour: 28.8, Sigma: .75, Rho: .7, Hours: venusHours, Days: venusDays}
	law := func(parts ...Part) Law { return Lognormal{Parts: parts, Max: 4_320_000} }
	g.Mix = []Width{{1, .518, nil}, {2, .055, nil}, {3, .0016, nil}, {4, .073, nil}, {6, .0016, nil}, {7, .0020, nil},
		{8, .247, nil},
		{16, .042, nil}, {24, .0090, nil}, {32, .027, nil}, {40, .0029, nil}, {48, .0025, nil}, {56, .0018, nil},
		{64, .0023, nil},
		{80, .0015, nil}, {120, .0015, nil}, {128, .0038, nil}, {160, .0018, nil}}
	byClass(g.Mix, []widthClass{
		{1, law(Part{.262, 4.82, .69}, Part{.738, 5.89, 2.76})},
		{3, law(Part{.242, 5.02, .51}, Part{.656, 5.53, 2.69}, Part{.101, 11.80, .33})},
		{7, law(Part{.173, 4.69, .48}, Part{.669, 5.04, 2.32}, Part{.157, 10.66, 1.06})},
		{8, law(Part{.192, 5.10, .31}, Part{.708, 5.45, 2.23}, Part{.100, 11.05, .75})},
		{16, law(Part{.630, 5.39, 2.45}, Part{.135, 5.42, .45}, Part{.235, 10.75, .92})},
		{MaxGPUs, law(Part{.890, 4.84, 2.13}, Part{.110, 11.28, .74})},
	})
	g.Repeat = .3
	g.Users, g.UserLaw = 156, Mandelbrot{S: 2.24, Q: 7.8}
	g.States = []State{{"COMPLETED", .624, .513}, {"CANCELLED", .221, .394}, {"FAILED", .155, .093}}
	return g
}

var (
	venusHours = [24]float64{.90, .66, .60, .39, .27, .21, .19, .23, .38, .80, 1.31, 1.48, 1.17, 1.31, 1.57, 1.67, 1.72,
		1.72, 1.25, 1.30,
		1.33, 1.36, 1.16, 1.05}
	venusDays = [7]float64{1.06, 1.11, 1.28, 1.20, .95, .68, .72}
)

// likePAI is Alibaba's PAI of 2020 (Weng et al., NSDI'22), as the sample of 60,105 terminated tasks, about 8 %, has it:
// arrivals are starts, the phase of hours and days is arbitrary, fractions of a GPU are whole ones, and a width is
// instances times GPUs. Widths are those of the sample, of 0.1 % or more, and 200. The longest job is that of the whole
// trace. Of widths 2 and 3, 4 to 8, and 9 to 16 no parameters are published: theirs are fitted here to the sample by
// expectation maximization, which gives the published ones of width 1, and the published distance of 0.015 for 9 to 16.
// Only terminated tasks are known, so all end so.
func likePAI(g Generator) Generator {
	g.Profile = &Profile{PerHour: 41.0, Sigma: .34, Rho: .7,
		Hours: [24]float64{.62, .82, .92, 1.00, 1.21, .96, .85, 1.20, 1.31, 1.02, 1.00, 1.01, 1.08, 1.00, 1.11, 1.09,
			.94, .94, .87, .70, .69,
			1.55, 1.09, 1.02},
		Days: [7]float64{.81, .83, 1.10, 1.13, 1.06, 1.08, .98},
	}
	law := func(parts ...Part) Law { return Lognormal{Parts: parts, Max: 626_371} }
	g.Mix = []Width{{1, .770, nil}, {2, .031, nil}, {3, .0150, nil}, {4, .014, nil}, {5, .0171, nil}, {6, .0024, nil},
		{8, .012, nil},
		{10, .0401, nil}, {12, .0080, nil}, {15, .0042, nil}, {16, .009, nil}, {20, .0213, nil}, {25, .0063, nil},
		{28, .0010, nil}, {30, .0093, nil},
		{32, .0011, nil}, {40, .0070, nil}, {50, .0144, nil}, {60, .0017, nil}, {64, .0011, nil}, {80, .0018, nil},
		{100, .0037, nil},
		{200, .0006, nil}}
	byClass(g.Mix, []widthClass{
		{1, law(Part{.217, 3.64, .47}, Part{.365, 5.65, .88}, Part{.417, 8.35, 1.34})},
		{3, law(Part{.117, 4.04, .26}, Part{.581, 5.84, 1.33}, Part{.302, 7.99, 1.74})},
		{8, law(Part{.106, 4.36, .31}, Part{.265, 5.42, .82}, Part{.629, 8.48, 1.55})},
		{16, law(Part{.396, 5.57, .79}, Part{.168, 7.26, .34}, Part{.436, 8.69, 1.26})},
		{MaxGPUs, law(Part{.173, 5.18, .93}, Part{.827, 8.25, 1.43})},
	})
	g.Repeat = .3
	g.States = []State{{"Terminated", 1, 1}}
	return g
}

// likeSeren is Seren of the Shanghai AI Laboratory (Hu et al., NSDI'24), 663,813 GPU jobs: widths, durations and end
// states from figures and the summary published with the trace. Inferred, for no rows are public: the rate, those jobs
// over the 184 days from March to August 2023; hours, days, sigma, rho and repetition of Venus, which is as Seren is in
// China; widths above 64 have the law of pretraining jobs, all others that of all jobs.
func likeSeren(g Generator) Generator {
	g.Profile = &Profile{PerHour: 150.3, Sigma: .75, Rho: .7, Hours: venusHours, Days: venusDays}
	law := func(parts ...Part) Law { return Lognormal{Parts: parts, Max: 1_209_600} }
	g.Mix = []Width{{1, .540, nil}, {2, .114, nil}, {4, .024, nil}, {8, .288, nil}, {16, .011, nil}, {32, .009, nil},
		{64, .004, nil},
		{128, .0020, nil}, {256, .0016, nil}, {512, .0008, nil}, {768, .0006, nil}, {1024, .0004, nil}}
	byClass(g.Mix, []widthClass{
		{64, law(Part{.152, 2.39, .47}, Part{.501, 4.75, 2.65}, Part{.347, 5.46, .82})},
		{MaxGPUs, law(Part{.560, 4.49, 3.10}, Part{.344, 5.93, .94}, Part{.096, 11.10, .99})},
	})
	g.Repeat = .3
	g.States = []State{{"COMPLETED", .497, .212}, {"CANCELLED", .075, .664}, {"FAILED", .429, .124}}
	return g
}

// widthClass is the law of widths up to a number of GPUs.
type widthClass struct {
	upTo int
	law  Law
}

// Philly is a law fitted to all 111,549 GPU jobs of Microsoft's Philly trace: three lognormal parts (Kolmogorov-Smirnov
// distance 0.023), cut at 60 days, the length of its longest jobs.
func Philly() Law {
	return Lognormal{Parts: []Part{{.129, 4.16, .17}, {.161, 7.48, .59}, {.710, 7.50, 2.64}}, Max: 60 * 86400}
}

// PhillyMix is the share of jobs by width in the Philly trace, odd widths left out.
func PhillyMix() []Width {
	return []Width{{GPUs: 1, Share: .867}, {GPUs: 2, Share: .023}, {GPUs: 4, Share: .049}, {GPUs: 8, Share: .051},
		{GPUs: 16, Share: .0076}, {GPUs: 32, Share: .0019}, {GPUs: 64, Share: .0003}}
}

// byClass gives each width the law of the first class that it is in.
func byClass(mix []Width, classes []widthClass) {
	for i := range mix {
		at := slices.IndexFunc(classes, func(c widthClass) bool { return mix[i].GPUs <= c.upTo })
		mix[i].Durations = classes[at].law
	}
}
