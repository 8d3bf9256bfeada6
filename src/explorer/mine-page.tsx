import { renderPage, type Site } from './page.js'
import { Card, Head, Steps, VERBATIM } from './parts.js'

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
        <div class="two">
          <div class="stack">
            <section id="progress" class="card" aria-labelledby="progress-title" hidden>
              <h2 id="progress-title" class="vh">
                Progress
              </h2>
              <p id="letters" class="letters" />
              <p id="status" role="status" />
              <div id="search" hidden>
                <label for="luck">How likely it was to have found one by now</label>
                <progress id="luck" max="100" value="0" />
                <dl class="figures">
                  <Figure term="Hashes" id="hashes" value="0" />
                  <Figure term="Rate" id="rate" value="–" />
                  <Figure term="Expected time" id="expected" value="–" />
                  <Figure term="Luck" id="luck-text" value="0 %" />
                </dl>
              </div>
              <div id="afterwards" hidden>
                <h3>And now</h3>
                <ul class="next" id="next" data-hosts={site.gatewayHost} />
              </div>
              <p class="buttons">
                <button id="stop" type="button" class="btn ghost" hidden>
                  Stop
                </button>
              </p>
            </section>
            <form id="form" class="card form" novalidate aria-label="What to mine">
              <div class="field">
                <label for="name">Name</label>
                <input
                  id="name"
                  class="hero-input"
                  name="name"
                  {...VERBATIM}
                  aria-describedby="name-hint name-state"
                  required
                />
                <p id="name-hint" class="hint">
                  Characters of a–z, 0–9 and the hyphen.
                </p>
                <p id="name-state" class="state" aria-live="polite" />
              </div>
              <div id="needed" class="form" />
              <details id="options">
                <summary>Options</summary>
                <div class="form">
                  <div id="payment" class="form">
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
                    <div class="field">
                      <label for="owner">Owner’s address</label>
                      <input
                        id="owner"
                        name="owner"
                        maxlength={64}
                        {...VERBATIM}
                        aria-describedby="owner-hint"
                      />
                      <p id="owner-hint" class="hint" />
                    </div>
                  </div>
                  <div class="field">
                    <label for="workers">Workers</label>
                    <input
                      id="workers"
                      name="workers"
                      type="number"
                      min="1"
                      max="1024"
                      step="1"
                      inputMode="numeric"
                      aria-describedby="workers-hint"
                    />
                    <p id="workers-hint" class="hint">
                      The number of parallel searches. One per core is fastest; fewer leave cores for other
                      programs.
                    </p>
                  </div>
                </div>
              </details>
              <p id="form-error" class="error" role="alert" hidden />
              <div class="buttons">
                <button id="start" type="submit" class="btn" disabled>
                  Mine
                </button>
              </div>
            </form>
            <section id="mints" aria-label="Solutions and transactions" />
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

function Figure({ term, id, value }: { term: string; id: string; value: string }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd id={id}>{value}</dd>
    </div>
  )
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
