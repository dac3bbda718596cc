/* What Dash gives to callbacks in the browser. Read when it is asked for: the renderer sets it when it starts. */

export const context = () => window.dash_clientside.callback_context;
/** Ids with properties, such as "runs-q.value", of what has called the callback. */
export const triggers = () => context().triggered.map((one) => one.prop_id);
export const skip = () => window.dash_clientside.no_update;
export const skips = (count) => Array(count).fill(skip());
export const setProps = (id, props) => window.dash_clientside.set_props(id, props);
/** An element of HTML as a callback returns it. */
export const component = (type, props) => ({ namespace: "dash_html_components", type, props });

/** Whether two values of stores say the same, fields in the same order. */
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
/** Whether a view says something for a field. */
export const isSet = (view, name) => view[name] !== null && view[name] !== undefined;
export const isMissing = (value) => value === null || value === undefined || value === "";
