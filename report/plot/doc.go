// Package plot draws pictures of recorded runs for papers and pages: who held which GPUs, how systems compare, where
// GPU-hours went. A picture is a scene, a list of shapes and texts, which two writers know: SVG, in which text stays
// text, and PNG. The same runs and options give the same bytes. Names are text and nothing else.
package plot
