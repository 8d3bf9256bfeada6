import { type ComponentChildren, Fragment, type FunctionComponent, isValidElement, type VNode } from 'preact'
import { escaped } from './text.js'

/** Elements that have no content, and no end tag (HTML 13.1.2). */
const VOID: ReadonlySet<string> = new Set(['br', 'hr', 'img', 'input', 'link', 'meta', 'source', 'wbr'])
/** Attributes whose values `true` and `false` are written out: these, `aria-*` and `data-*`. */
const ENUMERATED: ReadonlySet<string> = new Set(['draggable', 'spellcheck'])

interface Props {
  children?: ComponentChildren
  dangerouslySetInnerHTML?: { __html: string }
  [name: string]: unknown
}

/**
 * JSX as HTML, with all text escaped. Writes the same as `preact-render-to-string` for function components without state, hooks
 * and contexts whose attributes have the names of HTML, in half the time, as it keeps nothing for each element.
 */
export function render(node: ComponentChildren): string {
  if (typeof node === 'string') return escaped(node)
  if (typeof node === 'number') return String(node)
  if (Array.isArray(node)) {
    let html = ''
    for (const each of node) html += render(each)
    return html
  }
  if (!isValidElement(node)) return ''
  const { type, props } = node as VNode<Props>
  if (typeof type === 'string') return element(type, props)
  return render(type === Fragment ? props.children : (type as FunctionComponent<Props>)(props))
}

function element(type: string, props: Props): string {
  let start = `<${type}`
  let content = ''
  for (const name in props) {
    const value = props[name]
    if (name === 'children') content = render(props.children)
    else if (name === 'dangerouslySetInnerHTML') content = props.dangerouslySetInnerHTML?.__html ?? ''
    else start += attribute(name, value)
  }
  return VOID.has(type) ? `${start}/>` : `${start}>${content}</${type}>`
}

function attribute(name: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  // `aria-` and `data-`.
  const isEnumerated = name[4] === '-' || ENUMERATED.has(name)
  if (value === false && !isEnumerated) return ''
  return value === '' || (value === true && !isEnumerated)
    ? ` ${name}`
    : ` ${name}="${escaped(String(value))}"`
}
