import { renderPage, type Site } from './page.js'
import { Card, Field, Head, Stat, Steps } from './parts.js'

/** The page that mines names in the browser. Its script, `mine-page`, finds these elements by their ids. */
export function minePage(site: Site): string {
  return renderPage({
    site,
    title: 'Mine a name',
    description: 'Mine a name by proof of work, in this browser.',
    section: 'mine',
    path: '/mine',
    scripts: site.catchingUp ? [] : ['/mine/main.js'],
    children: site.catchingUp ? (
      // A solution could be for a node that is spent.
      <Head
        title="Mine a name"
        lede="This host does not know yet which names are mined: what you found here might be worthless. Come back when it has caught up, or mine with another host."
      />
    ) : (
      <>
        <Head
          title="Mine a name"
          lede="A name belongs to whoever first finds a proof of work for each of its characters. This page searches for them on your machine."
        />
        <noscript>
          <p class="card error">The search needs JavaScript.</p>
        </noscript>
        <div class="split">
          <div class="stack">
            <section id="progress" class="card" aria-labelledby="progress-title" hidden>
              <h2 id="progress-title" class="vh">
                Progress
              </h2>
              <p id="letters" class="keys mono cluster" />
              <p id="status" role="status" />
              <div id="search" class="stack close" hidden>
                <label class="hint" for="luck">
                  How likely it was to have found one by now
                </label>
                <progress id="luck" max="100" value="0" />
                <dl class="facts">
                  <Stat noun="Hashes" id="hashes" value="0" />
                  <Stat noun="Rate" id="rate" value="–" />
                  <Stat noun="Expected time" id="expected" value="–" />
                  <Stat noun="Luck" id="luck-text" value="0 %" />
                </dl>
              </div>
              <div id="afterwards" class="stack close" hidden>
                <h3>And now</h3>
                <ul class="stack close" id="next" data-hosts={site.gatewayHost} />
              </div>
              <button id="stop" type="button" class="btn ghost" hidden>
                Stop
              </button>
            </section>
            <form id="form" class="card stack" novalidate aria-label="What to mine">
              <Field
                id="name"
                label="Name"
                hint="Characters of a–z, 0–9 and the hyphen."
                name="name"
                aria-describedby="name-hint name-state"
                required
              />
              <p id="name-state" class="state" aria-live="polite" />
              <div id="needed" hidden />
              <details id="options">
                <summary>Options</summary>
                <div class="stack">
                  <div id="payment" class="stack">
                    <fieldset id="payers">
                      <legend>Who pays</legend>
                      <Payer
                        value="fake"
                        label="Fake coins"
                        more="This local network accepts them. The whole name is mined."
                      />
                      <Payer
                        value="wallet"
                        label="A wallet (BRC-100)"
                        more="In this browser or on this machine. It pays for the whole name and sends each character to the network. It asks you once for up to 25 characters; and the first time, whether this page may keep names in it."
                      />
                      <Payer
                        value="nobody"
                        label="Nobody yet"
                        more="The next character is mined for the owner below, and you pay for its transaction elsewhere."
                      />
                    </fieldset>
                    <Field id="owner" label="Owner’s address" hint="" name="owner" maxlength={64} />
                  </div>
                  <Field
                    id="workers"
                    label="Workers"
                    hint="The number of parallel searches. One per core is fastest; fewer leave cores for other programs."
                    name="workers"
                    type="number"
                    min="1"
                    max="1024"
                    step="1"
                    inputMode="numeric"
                  />
                </div>
              </details>
              <p id="form-error" class="error" role="alert" hidden />
              <button id="start" type="submit" class="btn" disabled>
                Mine
              </button>
            </form>
            <section id="mints" class="stack" aria-label="Solutions and transactions" />
          </div>
          <div class="stack">
            <Card title="How it works">
              <Steps
                steps={{
                  'One character at a time':
                    'Each takes a hash that begins with enough zeros: about four million tries at 22 bits.',
                  'First come, first served':
                    'Whoever spends the node of the prefix first has the character. Nobody sells it.',
                  'Every prefix is a name':
                    'On the way to “home”, “h”, “ho” and “hom” are mined, too, if nobody has them.',
                  'Yours, as an ordinal': 'Keep it, give it away, or publish a site on it. It never expires.',
                }}
                now={3}
              />
            </Card>
            <Card title="The tree" link={{ href: '/tree', text: 'Look at it' }}>
              <p id="tree" class="hint">
                Asking the server which tree of names it follows…
              </p>
            </Card>
          </div>
        </div>
      </>
    ),
  })
}

/** Who may pay for a name. @param more What that means. */
function Payer({ value, label, more }: { value: string; label: string; more: string }) {
  return (
    <label class="choice" id={value === 'fake' ? 'fake-choice' : undefined} hidden={value === 'fake'}>
      <input type="radio" name="payer" value={value} />
      <span>
        {label}
        <small>{more}</small>
      </span>
    </label>
  )
}
