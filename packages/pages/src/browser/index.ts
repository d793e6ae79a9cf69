/**
 * The parts that the scripts of the pages share. They never build HTML: the server sends parts that are escaped already, and
 * everything else is set as text.
 *
 * @module
 */

export { elementsOf, requireElement, setLive, showToast } from "./parts.ts";
export { addLocalTimes, showLocalTimes } from "./times.ts";
