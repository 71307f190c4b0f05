#!/usr/bin/env python3
"""The admin listener's page in a real browser, over a real load: it shows endpoints, charts and picks, sorts, explains,
fits narrow windows, is legible in both colour schemes, says when the daemon is gone, and runs within its own policy.
Leaves pictures in BINARY_DIR/page.

Usage: admin_page_test.py SOURCE_DIR BINARY_DIR; 77: there is no Chromium
"""
import os
import sys

import chromium
import demo_page

CONTRAST_MIN = 4.5  # WCAG 2.2, AA, of text
TEXTS = ("--text", "--muted", "--blue", "--green", "--amber", "--red", "--violet", "--orange")
GROUNDS = ("--ground", "--card")


def luminance(colour):
    digits = colour.strip().lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= .04045 else ((part + .055) / 1.055) ** 2.4 for part in parts]
    return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + .05) / (low + .05)


def check_contrast(page, scheme, mistakes):
    colour = lambda name: page.value(f"getComputedStyle(document.documentElement).getPropertyValue('{name}')")
    for text in TEXTS:
        for ground in GROUNDS:
            found = contrast(colour(text), colour(ground))
            if found < CONTRAST_MIN:
                mistakes.append(f"{scheme}: {text} on {ground} has a contrast of {found:.2f}; at least {CONTRAST_MIN}")


def check_sorting(page, mistakes):
    names = "[...document.querySelectorAll('#endpoints .name')].map((one) => one.textContent)"
    up = page.value(names)
    page.value("document.querySelector('#endpoints th button').click()")
    down = page.value(names)
    if up != sorted(up) or down != up[::-1]:
        mistakes.append(f"endpoints sort to {up} and {down}")
    if page.value("document.querySelector('#endpoints th').getAttribute('aria-sort')") != "descending":
        mistakes.append("the sorted column does not say so")


def check_words(page, width, mistakes):
    """The longest of what a pick may be won by is seen whole."""
    clipped = page.value("""(() => {
        const last = document.querySelector('details.pick > summary').lastElementChild;
        last.querySelector('.pill') ? last.querySelector('.pill').textContent = 'drawn among equals'
                                    : last.textContent = 'drawn among equals';
        return last.scrollWidth - last.clientWidth;
    })()""")
    if clipped > 0:
        mistakes.append(f"in a window of {width} the reason of a pick lacks {clipped} px")
    over = page.value("""(() => {
        const edge = (one) => one.getBoundingClientRect().right;
        const box = document.querySelector('.facts');
        return Math.max(...[...box.querySelectorAll('dd, dd small')].map(edge)) - edge(box);
    })()""")
    if over > 0:
        mistakes.append(f"in a window of {width} a fact at the top lacks {over} px")


def check(page, demo, pictures):
    mistakes = []
    for scheme in ("light", "dark"):
        page.shape(1280, 900, scheme)
        page.go(demo.url + "/")
        page.wait("document.querySelectorAll('#endpoints tbody tr').length === 8")
        page.wait("document.querySelectorAll('details.pick').length > 3")
        page.wait("document.querySelectorAll('.chart path.line').length >= 3")
        page.wait("document.querySelector('#ready').textContent === 'ready'")
        page.picture(os.path.join(pictures, scheme + ".png"))
        check_contrast(page, scheme, mistakes)
    check_sorting(page, mistakes)
    page.value("document.querySelector('details.pick').open = true")
    page.wait("document.querySelectorAll('.why tbody tr').length === 8")
    if page.value("document.querySelectorAll('.why tr.won').length") != 1:
        mistakes.append("the explanation of a pick does not show who won")
    page.picture(os.path.join(pictures, "explained.png"))
    for width in (1280, 1024, 800, 380):
        page.shape(width, 900, "light")
        wide = page.value("new Promise((done) => requestAnimationFrame(() => done(document.documentElement.scrollWidth)))")
        if wide > width:
            mistakes.append(f"a window of {width} has to be scrolled sideways: {wide}")
        check_words(page, width, mistakes)
        if width == 800:
            for scheme in ("light", "dark"):
                page.shape(width, 900, scheme)
                page.picture(os.path.join(pictures, f"{scheme}-{width}.png"))
    page.picture(os.path.join(pictures, "narrow.png"))
    outside = page.value("performance.getEntriesByType('resource').map((one) => one.name)"
                         f".filter((name) => !name.startsWith('{demo.url}/api/') && !name.startsWith('data:'))")
    if outside:
        mistakes.append(f"the page loads {outside}")
    # What the policy is for: a script that somebody got into the page does not run.
    page.value("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.intruder = 1'}))")
    if page.value("typeof window.intruder") != "undefined":
        mistakes.append("the page's policy lets another script run")
    refused = [text for text in page.errors if "Content Security Policy" in text or "content security policy" in text.lower()]
    mistakes += [f"the browser says: {text}" for text in page.errors if text not in refused]
    if len(refused) != 1:
        mistakes.append(f"the policy refused {refused}; the one intruder was expected")
    if demo.stop() != 0:
        mistakes.append("pickd-demo --page did not end well")
    page.shape(1280, 900, "light")
    page.wait("document.querySelector('#live-words').textContent.startsWith('reconnecting')")
    page.picture(os.path.join(pictures, "gone.png"), whole=False)
    return mistakes


def main():
    binaries = sys.argv[2]
    program = chromium.find()
    if not program:
        print("skipped: there is no Chromium (Debian's package chromium)")
        return 77
    pictures = os.path.join(binaries, "page")
    os.makedirs(pictures, exist_ok=True)
    with demo_page.Demo(binaries, "--scale", "0.5") as demo, chromium.Page(program) as page:
        mistakes = check(page, demo, pictures)
    for mistake in mistakes:
        print(mistake)
    print(f"page: pictures in {pictures}, {len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
