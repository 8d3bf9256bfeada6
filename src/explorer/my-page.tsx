import { renderPage, type Site } from './page.js'
import { Card, Field, Head, Steps } from './parts.js'

/**
 * The page for the names of a wallet, or of a local network, and what can be done with each. Its script, `my-page`, finds these
 * elements by their ids.
 */
export function myPage(site: Site): string {
  return renderPage({
    site,
    title: 'My names',
    description: 'Publish on your names, bind them, give them away, or mine on from them.',
    section: 'my',
    path: '/my',
    scripts: site.catchingUp ? [] : ['/mine/my.js'],
    children: (
      <>
        <Head
          title="My names"
          lede="Put a site on a name and change it later, bind it to your identity, give it away, or mine on from it."
        />
        <noscript>
          <p class="card error">
            This page needs JavaScript to ask your wallet. The commands <code>minetree publish</code>,{' '}
            <code>bind</code> and <code>transfer</code> do the same.
          </p>
        </noscript>
        {site.catchingUp ? (
          <p class="card">This host does not know yet where names are: come back when it has caught up.</p>
        ) : (
          <div class="split">
            <div class="stack">
              <Opened gatewayHost={site.gatewayHost} />
              <Card title="Names" id="names-title" link={{ href: '/mine', text: 'Mine one' }}>
                <p id="names-state" role="status">
                  Asking the server which tree of names it follows…
                </p>
                <button id="connect" type="button" class="btn" hidden>
                  Show the names in my wallet
                </button>
                <div id="unsent" />
                <ul id="names" class="rows" />
                <form id="find" aria-label="Open a name">
                  <Field
                    id="wanted"
                    label="Another name"
                    maxlength={255}
                    button={
                      <button type="submit" class="btn ghost">
                        Open
                      </button>
                    }
                  />
                </form>
              </Card>
            </div>
            <div class="stack">
              <Card title="What your wallet asks">
                <Steps
                  steps={{
                    'Nothing before you press a button':
                      'Each button that needs your wallet says first how often it will ask you.',
                    'Once for each change':
                      'A site with all its files is one transaction, and so one question.',
                    'Once for a whole name':
                      'When you mine, the first character pays for up to 24 more. What is left is yours.',
                    'Only the first time':
                      'Whether this page may keep names in your wallet, and whether it may see your identity key, if you bind one.',
                  }}
                />
              </Card>
              <Card title="What is checked here">
                <p class="hint">
                  Before a name moves, this browser verifies it from the genesis to where it is now. What your
                  wallet signs is compared with what you were shown, and kept in this browser until the server
                  has it.
                </p>
              </Card>
            </div>
          </div>
        )}
      </>
    ),
  })
}

function Opened({ gatewayHost }: Pick<Site, 'gatewayHost'>) {
  return (
    <section id="opened" class="card" aria-labelledby="opened-name" data-hosts={gatewayHost} hidden>
      <header class="cluster">
        <h2 id="opened-name" class="name" tabindex={-1}>
          A name
        </h2>
        <a id="opened-page" href="/names">
          Its page
        </a>
      </header>
      <p id="opened-state" role="status" />
      <p id="address" class="hint" />
      <div id="deeds" class="stack" hidden>
        <section class="stack close" aria-labelledby="publish-title">
          <h3 id="publish-title">Publish on it</h3>
          <label id="drop" class="drop">
            <b>Drop a folder here</b>
            <br />
            or <u>choose one</u>: a built site, with its <code>index.html</code>
            <input id="folder" type="file" class="vh" multiple />
          </label>
          <div id="plan" class="stack close" hidden>
            <ul id="changes" class="rows" />
            <p id="plan-text" class="hint" />
            <button id="publish" type="button" class="btn">
              Publish
            </button>
          </div>
        </section>
        <section class="stack close" aria-labelledby="bind-title">
          <h3 id="bind-title">Identity</h3>
          <p id="bind-text" class="hint" />
          <button id="bind" type="button" class="btn ghost">
            Bind it to my identity
          </button>
        </section>
        <section class="stack close" aria-labelledby="give-title">
          <h3 id="give-title">Give it away</h3>
          <form id="give" class="stack close" novalidate>
            <Field
              id="receiver"
              label="Their address"
              hint=""
              maxlength={64}
              button={
                <button type="submit" class="btn ghost">
                  Give it away…
                </button>
              }
            />
            <div id="sure" class="cluster" hidden>
              <button id="give-now" type="button" class="btn">
                Give it away
              </button>
              <button id="keep" type="button" class="btn ghost">
                Keep it
              </button>
            </div>
          </form>
        </section>
        <section class="stack close" aria-labelledby="mine-title">
          <h3 id="mine-title">Mine on</h3>
          <p class="hint">
            <a id="mine-on" href="/mine">
              Mine a longer name
            </a>{' '}
            that begins with this one.
          </p>
        </section>
      </div>
      <p id="deed-error" class="error" role="alert" hidden />
    </section>
  )
}
