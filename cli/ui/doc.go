// Package ui has the verb that shows a host in a browser.
package ui
