import type { VNode } from 'preact'
import { dependency } from '../../backend/src/graph/dependencies.js'
import { TIP } from '../../backend/src/graph/records.js'
import { storedOutput } from '../../backend/src/graph/stored-transaction.js'
import { lookalikesOf } from '../../backend/src/protocol/confusable-names.js'
import { readBinding, type UnverifiedBinding } from '../../backend/src/protocol/identity-binding.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { kindOf, kindShown } from './content-kinds.js'
import { dependenciesOfHeights, lifeOf, MapCard, Owner, Subject } from './ordinal-parts.js'
import { renderPage } from './page.js'
import {
  Badge,
  Card,
  contentLabel,
  Frame,
  Hex,
  NameLink,
  OutpointLink,
  openedAt,
  Preview,
  Text,
  When,
} from './parts.js'
import {
  contentView,
  dependenciesOfViews,
  type Explorer,
  type MadePage,
  nameHostUrl,
  PREVIEW_QUOTE,
} from './reads.js'
import { counted } from './text.js'
import { Keys, namesAfter } from './tree.js'

/**
 * The page of a name; undefined if it is not claimed. Takes a fixed number of indexed reads.
 *
 * @param from The latest step of its history to show; by default, the last.
 */
export function namePage(explorer: Explorer, name: string, from?: number): MadePage | undefined {
  const { store, site, tree } = explorer
  const origin = store.names.originOf(name)
  if (origin === undefined) return undefined
  const alike = lookalikesOf(name, MOST_ALIKE)
  const step = store.ordinals.at(origin, TIP)
  const node = store.names.liveNode(name)
  const claimed = store.names.claimed([...alike, ...namesAfter(name)])
  const height = store.transactions.heightOf(origin.txid)
  const { history, steps, timeOf } = lifeOf(explorer, origin, { from, height })
  const taken = new Set(claimed.map((each) => each.name))
  const claimedAlike = alike.filter((each) => taken.has(each))
  const tip = step?.output.outpoint ?? origin
  const map = step && store.metadata.merged(step)
  const spender = store.transactions.spenderOf(tip)
  // A P2PKH lock binds a name to no identity.
  const binding = step && step.output.owner === undefined ? readBindingAt(explorer, tip) : undefined
  const shownContent = step?.content.content
  const host = nameHostUrl(site, name)
  const view =
    shownContent &&
    contentView(
      explorer,
      { outpoint: step.content.outpoint, content: shownContent },
      { quoted: PREVIEW_QUOTE },
    )
  const content = view?.host === undefined ? view : { ...view, host: host ?? view.host }
  const isClaim = content === undefined || kindOf(content.contentType) === 'name'
  const isSite = !isClaim && kindShown(content) === 'directory' && content.files === undefined
  const [originText, tipText] = [formatOutpoint(origin), formatOutpoint(tip)]
  const src = `/content/${originText}:-1`
  const path = `/name/${name}`
  const html = renderPage({
    site,
    title: name.length > 40 ? `${name.slice(0, 40)}…` : name,
    description: `The name ${name}: who owns it, what it shows, and the proof that it is genuine.`,
    section: 'names',
    path,
    children: (
      <>
        <Crumbs name={name} />
        <Subject
          explorer={explorer}
          {...{ title: name, whole: name, name, path, origin: originText, tip: tipText }}
          verdict={
            height === undefined
              ? { kind: 'wait', text: 'Unconfirmed' }
              : { kind: 'plain', text: 'Traced to the genesis by this server' }
          }
          badges={
            spender !== undefined && (
              <Badge kind="bad">Its ordinal is spent: burnt, or moved where this host cannot follow</Badge>
            )
          }
          proof={{
            href: `${site.namesPrefix}/proof/${name}`,
            file: `${name.slice(0, 60)}.proof.beef`,
            text: 'Download proof',
          }}
          open={
            isClaim
              ? undefined
              : {
                  href: content.files === undefined ? (host ?? src) : openedAt(content, src),
                  what: isSite ? 'site' : 'content',
                }
          }
          shown={
            <Frame address={<NameAddress host={host} name={name} fallback={src} />}>
              {isClaim ? (
                <p class="view">
                  <b class="name">{name}</b>
                  <span>
                    Nothing is published on this name yet. <a href={`/my#${name}`}>Is it yours?</a>
                  </span>
                </p>
              ) : (
                <Preview
                  content={content}
                  reference={`${originText}:-1`}
                  stream={`${site.gatewayPrefix}/stream/${content.outpoint}`}
                />
              )}
            </Frame>
          }
          life={{ history, steps }}
          began="Mined"
          facts={{
            Owner: <Owner explorer={explorer} owner={step?.output.owner} />,
            Shows: content && !isClaim && contentLabel(content),
            Identity: binding && <Identity binding={binding} />,
            Mined: <When height={height} time={timeOf(height)} />,
            Work: tree && `${counted(name.length, 'character')} at ${tree.difficulty} bits each`,
            Origin: <OutpointLink outpoint={originText} what="origin" />,
            'Now at': isSameOutpoint(origin, tip) ? (
              'its origin'
            ) : (
              <OutpointLink outpoint={tipText} what="tip" />
            ),
            Steps: history && counted(history.last, 'step'),
            'Looks like':
              claimedAlike.length === 0 ? (
                site.catchingUp && 'not known yet'
              ) : (
                <span>
                  {claimedAlike.map((each, at) => (
                    <>
                      {at > 0 && ', '}
                      <NameLink key={each} name={each} />
                    </>
                  ))}
                </span>
              ),
            'As JSON': <a href={`${site.namesPrefix}/${name}`}>{`${site.namesPrefix}/…`}</a>,
          }}
          beside={
            <>
              <MapCard title="Metadata" map={map} />
              <Card title="Mine on from here" link={{ href: `/tree?prefix=${name}`, text: 'In the tree' }}>
                <Keys prefix={name} taken={taken} site={site} />
              </Card>
            </>
          }
        />
      </>
    ),
  })
  return {
    html,
    dependsOn: [
      dependency.lineages,
      dependency.proof(origin.txid),
      dependency.spend(tip),
      ...(content === undefined ? [] : dependenciesOfViews([content])),
      ...dependenciesOfHeights(steps),
      ...(step === undefined ? [dependency.all] : []),
      ...alike.map(dependency.name),
      // A mint of a longer name spends the node.
      node === undefined ? dependency.all : dependency.spend(node),
    ],
  }
}

function NameAddress({
  host,
  name,
  fallback,
}: {
  host: string | undefined
  name: string
  fallback: string
}): VNode {
  if (host === undefined)
    return (
      <>
        <span>
          <b class="name">{name.length > 40 ? `${name.slice(0, 40)}…` : name}</b> at its tip
        </span>
        <a class="apart" href={fallback}>
          Open
        </a>
      </>
    )
  return (
    <>
      <a href={host}>
        <span>
          <b class="name">{name}</b>
          {host.slice(2 + name.length)}
        </span>
      </a>
      <a class="apart" href={host}>
        Open
      </a>
    </>
  )
}

/** The path from the root to a name; of a long one, its ends. @param mined How many characters are mined; by default, all. */
export function Crumbs({ name, mined = name.length }: { name: string; mined?: number }): VNode {
  const lengths = Array.from({ length: name.length }, (_, at) => at + 1)
  const shownLengths = name.length <= 12 ? lengths : [...lengths.slice(0, 4), ...lengths.slice(-4)]
  return (
    <ol class="crumbs mono cluster" aria-label="Prefixes">
      <li>
        <a href="/tree" aria-label="The root">
          ·
        </a>
      </li>
      {shownLengths.map((length, at) => {
        const prefix = name.slice(0, length)
        const isCut = at === 4 && name.length > 12
        const label = prefix.length > 14 ? `…${prefix.slice(-12)}` : prefix
        return (
          <li key={length}>
            {isCut && <span aria-hidden="true">…</span>}
            {length === name.length ? (
              <span aria-current="page">{label}</span>
            ) : (
              <a href={`/name/${prefix}`} aria-label={prefix} class={length > mined ? 'missing' : undefined}>
                {label}
              </a>
            )}
          </li>
        )
      })}
    </ol>
  )
}

const MOST_SHOWN = 80

function readBindingAt({ store }: Explorer, tip: Outpoint): UnverifiedBinding | undefined {
  const script = storedOutput(tip, store.transactions)?.lockingScript
  return script && readBinding(script)
}

/** The identity key in the lock, and what its holder says about itself. */
function Identity({ binding: { identityKey, profile } }: { binding: UnverifiedBinding }): VNode {
  const { name, domain } = profile
  return (
    <>
      <Hex text={identityKey} what="identity key" />
      <br />
      {name !== undefined && (
        <>
          <Text text={name} most={MOST_SHOWN} />
          {domain !== undefined && ' at '}
        </>
      )}
      {domain !== undefined && <Text text={domain} most={MOST_SHOWN} />}
      {(name !== undefined || domain !== undefined) && <br />}
      <span class="hint">Not verified by this page</span>
    </>
  )
}

const MOST_ALIKE = 10
