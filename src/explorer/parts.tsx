import type { ComponentChildren, JSX, VNode } from 'preact'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { NameThing } from '../../backend/src/read/things.js'
import { isQuotable, KIND_LABELS, kindShown } from './content-kinds.js'
import type { DirectoryFiles, DirectorySize } from './directory-files.js'
import { byteSize, count, counted, isWellFormed, moment, shortened, shortOutpoint, shown } from './text.js'

/** A stranger's text, isolated from the direction of the text around it. */
export function Text({ text, most }: { text: string; most?: number }): VNode {
  return <bdi dir="auto">{shown(text, most)}</bdi>
}

/** A link to the page of a name. Names are ASCII. */
export function NameLink({ name }: { name: string }): VNode {
  return (
    <a class="name" href={`/name/${name}`}>
      {name}
    </a>
  )
}

export function prefixesText({ prefixes = 0, isMore = false }: Partial<FoldedPrefixes>): string | undefined {
  return prefixes === 0
    ? undefined
    : `and ${isMore ? 'more than ' : ''}${counted(prefixes, 'prefix', 'prefixes')}`
}

type FoldedPrefixes = Pick<NameThing, 'prefixes' | 'isMore'>

export function WithPrefixes(folded: Partial<FoldedPrefixes>): VNode | null {
  const text = prefixesText(folded)
  return text === undefined ? null : <small class="also">{text}</small>
}

/** A button that copies a text; a script reveals it. */
export function Copy({ text, what }: { text: string; what: string }): VNode {
  return (
    <button class="btn bare" type="button" hidden data-copy={text} aria-label={`Copy the ${what}`}>
      copy
    </button>
  )
}

/** A shortened hex string or address, with the whole as its title and a button to copy it. */
export function Hex({ text, what, href }: { text: string; what: string; href?: string }): VNode {
  const word = <code title={text}>{text.includes('_') ? shortOutpoint(text) : shortened(text)}</code>
  return (
    <span class="hex">
      {href === undefined ? word : <a href={href}>{word}</a>}
      <Copy text={text} what={what} />
    </span>
  )
}

export function AddressLink({ address }: { address: string }): VNode {
  return <Hex text={address} what="address" href={`/address/${address}`} />
}

export function OutpointLink({ outpoint, what = 'outpoint' }: { outpoint: string; what?: string }): VNode {
  return <Hex text={outpoint} what={what} href={`/ordinal/${outpoint}`} />
}

/** A time; a script shows its age instead. */
export function Time({ at }: { at: number }): VNode {
  return (
    <time datetime={new Date(at).toISOString()} data-ago>
      {moment(at)}
    </time>
  )
}

export function When({ height, time }: { height?: number | undefined; time?: number | undefined }): VNode {
  return (
    <>
      {height === undefined ? 'in no block yet' : `in block ${count(height)}`}
      {time !== undefined && (
        <>
          {', '}
          <Time at={time} />
        </>
      )}
    </>
  )
}

export type BadgeKind = 'good' | 'wait' | 'bad' | 'plain'

/** A state in words; its colour only repeats them. */
export function Badge(options: { kind: BadgeKind; id?: string; children: ComponentChildren }): VNode {
  const { kind, id, children } = options
  return (
    <span id={id} class={kind === 'good' ? 'badge' : `badge ${kind}`}>
      {children}
    </span>
  )
}

export function Card({
  title,
  link,
  id = title.toLowerCase().replace(/[^a-z]+/g, '-'),
  children,
}: {
  title: string
  link?: { href: string; text: string }
  id?: string
  children: ComponentChildren
}): VNode {
  return (
    <section class="card" aria-labelledby={id}>
      <header class="cluster">
        <h2 id={id}>{title}</h2>
        {link && <a href={link.href}>{link.text}</a>}
      </header>
      {children}
    </section>
  )
}

/** A card without a title. @param options.label Names it for screen readers. */
export function PlainCard({ label, children }: { label: string; children: ComponentChildren }): VNode {
  return (
    <section class="card" aria-label={label}>
      {children}
    </section>
  )
}

/** Steps in order, each with a detail. @param now The index of the marked one. */
export function Steps({ steps, now }: { steps: Readonly<Record<string, string>>; now?: number }): VNode {
  return (
    <ol class="steps">
      {Object.entries(steps).map(([step, more], at) => (
        <li key={step} class={at === now ? 'now' : undefined}>
          {step}
          <small>{more}</small>
        </li>
      ))}
    </ol>
  )
}

/** For fields of names and addresses: no automatic correction. */
const VERBATIM = { autocomplete: 'off', autocapitalize: 'none', spellcheck: false } as const

/** A field with its label. @param options.hint What to enter, or an empty text that a script replaces. */
export function Field({
  id,
  label,
  hint,
  button,
  ...input
}: { id: string; label: string; hint?: string; button?: VNode } & JSX.IntrinsicElements['input']): VNode {
  const hintId = hint === undefined ? undefined : `${id}-hint`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="cluster">
        <input id={id} aria-describedby={hintId} {...VERBATIM} {...input} />
        {button}
      </div>
      {hintId !== undefined && (
        <p id={hintId} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

/** Terms and values; those without a value are left out. @param options.isWide Whether lines are between them. */
export function Facts({
  facts,
  isWide = false,
}: {
  facts: Readonly<Record<string, ComponentChildren>> | readonly (readonly ComponentChildren[])[]
  isWide?: boolean
}): VNode {
  const pairs: readonly (readonly ComponentChildren[])[] = Array.isArray(facts)
    ? facts
    : Object.entries(facts)
  return (
    <dl class={isWide ? 'facts wide' : 'facts'}>
      {pairs
        .filter(([, value]) => value !== undefined && value !== null && value !== false)
        .map(([term, value], at) => (
          <div key={at}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

/** @param options.id Where a script writes the value. */
export function Stat(options: { value: ComponentChildren; noun: ComponentChildren; id?: string }): VNode {
  const { value, noun, id } = options
  return (
    <div>
      <dt>{noun}</dt>
      <dd id={id}>{value}</dd>
    </div>
  )
}

/** The head of a page, with badges and buttons beside the title. */
export function Head({
  title,
  subject,
  lede,
  badges,
  actions,
}: {
  title: ComponentChildren
  /** For the page of a name, an output or a transaction: all of it, of which the title may be a part. */
  subject?: string
  lede?: ComponentChildren
  badges?: ComponentChildren
  actions?: ComponentChildren
}): VNode {
  const whole = subject === title ? undefined : subject
  const isLong = whole !== undefined || (subject !== undefined && subject.length > 16)
  return (
    <div class={subject === undefined ? 'head stack close' : 'head title stack close'}>
      <div class="cluster">
        <h1 class={isLong ? 'long' : undefined} title={whole}>
          {title}
        </h1>
        {badges && <div class="badges cluster">{badges}</div>}
        {actions && <div class="actions apart cluster">{actions}</div>}
      </div>
      {lede && <p class="lede">{lede}</p>}
    </div>
  )
}

interface Column<Row> {
  head: string
  /** Whether it is aligned to the right, as for numbers. */
  isEnd?: boolean
  cell: (row: Row) => ComponentChildren
}

/** @param options.folds Whether each row takes several lines on a phone, one for each column. */
export function Table<Row>({
  columns,
  rows,
  folds = false,
}: {
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  folds?: boolean
}): VNode {
  return (
    <table class={folds ? 'folds' : undefined}>
      <thead>
        <tr>
          {columns.map(({ head, isEnd }) => (
            <th key={head} scope="col" class={isEnd ? 'end' : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={at}>
            {columns.map(({ head, isEnd, cell }) => (
              <td key={head} data-label={folds ? head : undefined} class={isEnd ? 'end' : undefined}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export function NameList({ names }: { names: readonly { name: string; more?: ComponentChildren }[] }): VNode {
  return (
    <ul class="rows">
      {names.map(({ name, more }) => (
        <li key={name}>
          <NameLink name={name} />
          {more && <small>{more}</small>}
        </li>
      ))}
    </ul>
  )
}

/** A link to the next page of a list, and one back to its start. */
export function Pager({
  first,
  next,
}: {
  first?: string | undefined
  next?: string | undefined
}): VNode | null {
  if (first === undefined && next === undefined) return null
  return (
    <nav class="pager cluster" aria-label="Pages">
      {first !== undefined && (
        <a class="btn ghost" href={first}>
          From the start
        </a>
      )}
      {next !== undefined && (
        <a class="btn ghost" href={next} rel="next">
          More
        </a>
      )}
    </nav>
  )
}

export function Empty({ children }: { children: ComponentChildren }): VNode {
  return <p class="hint">{children}</p>
}

/** An inscription, as a tile or a preview shows it. */
export interface ContentView {
  outpoint: string
  /** As inscribed. */
  contentType: string
  /** The type of a patch's result, if this store has what the patch is built on. */
  shows?: string | undefined
  /** In bytes. */
  length: number
  quote?: string | undefined
  /** The path of the image in other sizes. */
  image?: string | undefined
  /** The URL of the content's own host, if it opens as a page. */
  host?: string | undefined
  /** The files of a short directory without an index, which does not open as a page. */
  files?: DirectoryFiles | undefined
  leadsTo?: DirectorySize | undefined
  /** For the first chunk of a stream: the counted bytes of the stream, and the last counted chunk. */
  stream?: { length: number; isMore: boolean; last: Outpoint } | undefined
}

const TILE_FILES = 5
/** The largest image that a tile loads, in bytes. */
const TILE_IMAGE = 2_000_000

/** The size of content: for a directory, all that it leads to; for a stream, all of it. */
export function sizeText({
  length,
  shows,
  leadsTo,
  stream,
}: Pick<ContentView, 'length' | 'shows' | 'leadsTo' | 'stream'>): string {
  const more = (isMore: boolean): string => (isMore ? 'more than ' : '')
  if (shows !== undefined) return `patch of ${byteSize(length)}`
  if (stream !== undefined) return more(stream.isMore) + byteSize(stream.length)
  if (leadsTo === undefined || leadsTo.files === 0) return byteSize(length)
  const { files, bytes, isMore } = leadsTo
  return `${more(isMore)}${counted(files, 'file')}, ${byteSize(bytes)}`
}

export function contentLabel(
  content: Pick<ContentView, 'contentType' | 'length' | 'shows' | 'leadsTo' | 'stream'>,
): string {
  return `${KIND_LABELS[kindShown(content)]} · ${sizeText(content)}`
}

function Tile({ content }: { content: ContentView }): VNode {
  const kind = kindShown(content)
  const type = shown(content.contentType, 40)
  return (
    <a class="tile" href={`/ordinal/${content.outpoint}`}>
      <span class="p">
        <TileContent content={content} />
      </span>
      <small class="caption cluster">
        <span title={type}>{content.files ? 'directory' : KIND_LABELS[kind]}</span>
        <span class="apart">{sizeText(content)}</span>
      </small>
    </a>
  )
}

export function Tiles({ contents }: { contents: readonly ContentView[] }): VNode {
  return (
    <div class="grid">
      {contents.map((content) => (
        <Tile key={content.outpoint} content={content} />
      ))}
    </div>
  )
}

function TileContent({ content }: { content: ContentView }): VNode {
  const { outpoint, contentType, length, quote, files, host, image } = content
  const kind = kindShown(content)
  if (files !== undefined)
    return files.total === 0 ? (
      <span class="mono">an empty directory</span>
    ) : (
      <span class="quote mono">
        {files.names.slice(0, TILE_FILES).map((name) => (
          <>
            <Text text={name} most={40} />
            {'\n'}
          </>
        ))}
        {files.total > TILE_FILES && `and ${count(files.total - TILE_FILES)} more`}
      </span>
    )
  if (quote !== undefined)
    return (
      <span class="quote mono">
        <Text text={quote} most={140} />
      </span>
    )
  if (image !== undefined)
    return (
      <img
        src={squareOf(image, 192)}
        srcset={[192, 384, 512].map((side) => `${squareOf(image, side)} ${side}w`).join()}
        sizes="160px"
        alt=""
        loading="lazy"
        decoding="async"
        width="160"
        height="160"
      />
    )
  // This path has only the first chunk of a stream.
  if (kind === 'image' && length <= TILE_IMAGE && content.stream === undefined)
    return (
      <img src={`/content/${outpoint}`} alt="" loading="lazy" decoding="async" width="160" height="160" />
    )
  if (kind === 'page' || kind === 'directory')
    return (
      <iframe
        src={`${host ?? `/content/${outpoint}`}?framed`}
        title={`Preview of a ${KIND_LABELS[kind]}`}
        sandbox=""
        loading="lazy"
        tabindex={-1}
        aria-hidden="true"
        referrerpolicy="no-referrer"
        width="640"
        height="640"
      />
    )
  return (
    <span class="mono">
      <Text text={contentType} most={40} />
    </span>
  )
}

function squareOf(image: string, side: number): string {
  return `${image}?w=${side}&h=${side}&fit=fill`
}

/**
 * The URL that opens content: its host, or else its path in the content route. A directory without an index opens as inscribed.
 */
export function openedAt({ files, host }: Pick<ContentView, 'files' | 'host'>, src: string): string {
  return files === undefined ? (host ?? src) : `${host ?? src}?raw`
}

/** The host name in a URL; that of an outpoint is shortened. */
export function hostText(host: string): string {
  return host.slice(2, -1).replace(/^(\w{8})\w{40}(\w{8}\.)/, '$1…$2')
}

/** Content as large as a page has room for it. Scripts run only inside a sandbox. */
export function Preview({
  content,
  reference,
  stream,
}: {
  content: ContentView
  /** The path below the content route: an outpoint, with or without a sequence. */
  reference: string
  /** The path of the whole stream, if the content begins one. */
  stream?: string | undefined
}): VNode {
  const kind = kindShown(content)
  const src = `/content/${reference}`
  const { host = src } = content
  if (content.files !== undefined) return <Files files={content.files} src={host.replace(/\/$/, '')} />
  if (content.quote !== undefined)
    return (
      <pre class="view mono">
        <Text text={content.quote} most={4000} />
      </pre>
    )
  if (kind === 'image')
    return (
      <img
        class="view"
        src={content.stream === undefined ? src : (stream ?? src)}
        alt="What is inscribed"
        loading="lazy"
        decoding="async"
      />
    )
  if (kind === 'audio')
    return (
      // biome-ignore lint/a11y/useMediaCaption: a stranger's recording has none
      <audio class="view" controls preload="none" src={stream ?? src} />
    )
  if (kind === 'video')
    return (
      // biome-ignore lint/a11y/useMediaCaption: a stranger's film has none
      <video class="view" controls preload="none" src={stream ?? src} />
    )
  // Text made by patches is not quoted.
  if (kind === 'page' || kind === 'directory' || (content.shows !== undefined && isQuotable(kind)))
    return (
      <iframe
        class="view"
        src={`${host}?framed`}
        title="What is inscribed, in a sandbox"
        sandbox="allow-scripts"
        loading="lazy"
        referrerpolicy="no-referrer"
      />
    )
  return (
    <p class="view">
      <span>
        {byteSize(content.length)} of <Text text={content.contentType} />
      </span>
      <a class="btn ghost" href={src}>
        Open the content
      </a>
    </p>
  )
}

function Files({ files: { names, total }, src }: { files: DirectoryFiles; src: string }): VNode {
  if (total === 0) return <p class="view">A directory without files to open.</p>
  return (
    <div class="files">
      <p class="hint">A directory of {counted(total, 'file')} without an index page: open them one by one.</p>
      <FileList names={names} total={total} src={src} />
    </div>
  )
}

/** The first files of a directory, and how many more it has. @param options.src Where the directory is served. */
export function FileList({
  names,
  total,
  src,
}: {
  names: readonly string[]
  total: number
  src: string
}): VNode {
  return (
    <>
      <ul class="rows">
        {names.map((name) => {
          const text = <Text text={name} most={120} />
          const path = filePath(src, name)
          return <li key={name}>{path === undefined ? text : <a href={path}>{text}</a>}</li>
        })}
      </ul>
      {total > names.length && <p class="hint">And {counted(total - names.length, 'more file')}.</p>}
    </>
  )
}

/** The longest file name that gets a link, in characters. */
const LINKED_NAME = 200

/** The URL of a file in a directory; undefined for a name that cannot be a segment of a path. */
function filePath(directory: string, name: string): string | undefined {
  if (name.length > LINKED_NAME || /^\.{0,2}$/.test(name) || !isWellFormed(name)) return undefined
  return `${directory}/${encodeURIComponent(name)}`
}

/** A frame around an image, a page or text, with the address that serves it. */
export function Frame(options: { address: ComponentChildren; children: ComponentChildren }): VNode {
  const { address, children } = options
  return (
    <div class="frame">
      <header class="url mono cluster">{address}</header>
      {children}
    </div>
  )
}
