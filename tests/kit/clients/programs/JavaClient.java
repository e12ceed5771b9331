// Makes calls with analytics-java or rudder-sdk-java, in a process of its own. Both have the same methods.

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.ToNumberPolicy;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

public class JavaClient {
  private static final Map<String, String> CLASSES =
      Map.of(
          "identify", "IdentifyMessage",
          "track", "TrackMessage",
          "group", "GroupMessage",
          "page", "PageMessage",
          "screen", "ScreenMessage",
          "alias", "AliasMessage");

  /** What the builder of a message of a type takes. */
  private static final Map<String, String> ARGUMENTS =
      Map.of("track", "event", "group", "groupId", "page", "name", "screen", "name", "alias", "previousId");

  public static void main(String[] arguments) throws Exception {
    Gson gson = new GsonBuilder().setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE).create();
    Map<?, ?> run = (Map<?, ?>) decode(gson.fromJson(arguments[0], Object.class));
    List<?> calls = (List<?>) run.get("calls");
    String module = (String) run.get("module");
    String namespace = module.substring(0, module.lastIndexOf('.'));
    List<String> errors = Collections.synchronizedList(new ArrayList<>());
    List<Integer> delivered = Collections.synchronizedList(new ArrayList<>());
    Map<String, Integer> indexes = new ConcurrentHashMap<>();
    CountDownLatch open = new CountDownLatch(calls.size());

    Class<?> callback = Class.forName(namespace + ".Callback");
    Object listener =
        Proxy.newProxyInstance(
            callback.getClassLoader(),
            new Class<?>[] {callback},
            (proxy, method, given) -> {
              if (method.getName().equals("failure")) errors.add(String.valueOf(given[1]));
              else delivered.add(indexes.get((String) invoke(given[0], "messageId")));
              open.countDown();
              return null;
            });
    Object builder = invokeOf(Class.forName(module), null, "builder", run.get("key"));
    invoke(builder, namespace.contains("rudder") ? "setDataPlaneUrl" : "endpoint", run.get("url"));
    invoke(builder, "callback", listener);
    invoke(builder, "flushQueueSize", 3);
    invoke(builder, "flushInterval", 1500L, TimeUnit.MILLISECONDS);
    Object analytics = invoke(builder, "build");
    for (int index = 0; index < calls.size(); index += 1) {
      Map<?, ?> call = (Map<?, ?>) calls.get(index);
      Object message = messageOf(namespace, call);
      String id = UUID.randomUUID().toString();
      invoke(message, "messageId", id);
      indexes.put(id, index);
      invoke(analytics, "enqueue", message);
      Thread.sleep(((Number) run.get("paceMs")).longValue());
    }
    open.await();
    invoke(analytics, "shutdown");
    System.out.println(gson.toJson(Map.of("errors", errors, "delivered", delivered)));
    System.exit(0);
  }

  private static Object messageOf(String namespace, Map<?, ?> call) throws Exception {
    String type = (String) call.get("type");
    Class<?> message = Class.forName(namespace + ".messages." + CLASSES.get(type));
    String argument = ARGUMENTS.get(type);
    Object builder =
        argument == null ? invokeOf(message, null, "builder") : invokeOf(message, null, "builder", call.get(argument));
    for (String field : List.of("userId", "anonymousId", "properties", "traits", "timestamp")) {
      if (call.containsKey(field)) invoke(builder, field, call.get(field));
    }
    // A screen has no category here.
    if (type.equals("page")) invoke(builder, "category", call.get("category"));
    return builder;
  }

  private static Object invoke(Object target, String name, Object... arguments) throws Exception {
    return invokeOf(target.getClass(), target, name, arguments);
  }

  private static Object invokeOf(Class<?> owner, Object target, String name, Object... arguments) throws Exception {
    for (Method method : owner.getMethods()) {
      if (method.getName().equals(name) && takes(method, arguments)) {
        method.setAccessible(true);
        return method.invoke(target, arguments);
      }
    }
    throw new NoSuchMethodException(owner.getName() + "." + name);
  }

  private static boolean takes(Method method, Object[] arguments) {
    Class<?>[] types = method.getParameterTypes();
    if (types.length != arguments.length) return false;
    for (int index = 0; index < types.length; index += 1) {
      Class<?> type = types[index];
      if (!type.isPrimitive() && !type.isInstance(arguments[index])) return false;
    }
    return true;
  }

  /** Returns a value of JSON, in which `{"$date": "…"}` is a date. */
  private static Object decode(Object value) {
    if (value instanceof List<?> list) {
      List<Object> decoded = new ArrayList<>();
      for (Object each : list) decoded.add(decode(each));
      return decoded;
    }
    if (!(value instanceof Map<?, ?> map)) return value;
    if (map.get("$date") instanceof String date) return Date.from(Instant.parse(date));
    Map<Object, Object> decoded = new LinkedHashMap<>();
    map.forEach((name, each) -> decoded.put(name, decode(each)));
    return decoded;
  }
}
